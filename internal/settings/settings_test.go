package settings_test

import (
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/settings"
)

// write puts text into a file called c.yaml and makes its folder current, so
// that messages begin with the bare name.
func write(t *testing.T, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("c.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "c.yaml"
}

// What the gateway keeps is public and has a ttl; reads have to be named.
func TestM2L08Kept(t *testing.T) {
	const all = "servers: {a: {builtin: notebook, cache: {server/discover: %[1]s, tools/list: %[1]s, resources/read: %[1]s, prompts/list: {}}}}"
	for _, tt := range []struct {
		hint string
		want []string
	}{
		{"{}", nil},
		{"{ttl: 1m}", nil},
		{"{scope: public}", nil},
		{"{ttl: 1m, scope: public}", []string{"tools/list"}},
		{"{ttl: 1m, scope: public, keep: false}", nil},
	} {
		c, _, err := config.Load(config.Options{Path: write(t, fmt.Sprintf(all, tt.hint))})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Servers[0].Kept(); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("cache of %s: kept %q, want %q", tt.hint, got, tt.want)
		}
	}
	c, _, err := config.Load(config.Options{Path: write(t, "servers: {a: {builtin: notebook, cache: {resources/read: {ttl: 1m, scope: public, keep: true}}}}")})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Servers[0].Kept(); !reflect.DeepEqual(got, []string{"resources/read"}) {
		t.Errorf("reads asked for: kept %q", got)
	}
}

func TestT32Hidden(t *testing.T) {
	for _, tt := range []struct {
		name, keys string
		want       []string
	}{
		{"nothing", "", nil},
		{"tasks on", "tasks: on", nil},
		{"tasks auto", "tasks: auto", nil},
		{"tasks run", "tasks: run", []string{"io.modelcontextprotocol/tasks"}},
		{"tasks run, by keys", "tasks: {mode: run, ttl: 2h}", []string{"io.modelcontextprotocol/tasks"}},
		{"tasks off", "tasks: off", []string{"io.modelcontextprotocol/tasks"}},
		{"tasks off, quoted", `tasks: "off"`, []string{"io.modelcontextprotocol/tasks"}},
		{"others", "extensions: {hide: [io.modelcontextprotocol/ui, com.example/x]}", []string{"io.modelcontextprotocol/ui", "com.example/x"}},
		{"both", "extensions: {hide: [com.example/x]}\n    tasks: off", []string{"com.example/x", "io.modelcontextprotocol/tasks"}},
	} {
		t.Run("T-32 "+tt.name, func(t *testing.T) {
			path := write(t, "servers:\n  a:\n    builtin: notebook\n    "+tt.keys+"\n")
			c, warnings, err := config.Load(config.Options{Path: path})
			if err != nil || len(warnings) != 0 {
				t.Fatalf("Load = %v, %v", warnings, err)
			}
			if got := c.Servers[0].Hidden(); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("Hidden() = %q, want %q", got, tt.want)
			}
		})
	}
}

// A mode, or keys; the mode alone says who holds tasks, and for whom tools are run.
func TestT08Modes(t *testing.T) {
	for _, tt := range []struct {
		keys        string
		holds, runs bool
		life        time.Duration
		optional    string
	}{
		{"", true, true, time.Hour, "task"},
		{"tasks: auto", true, true, time.Hour, "task"},
		{"tasks: on", true, true, time.Hour, "task"},
		{"tasks: run", false, true, time.Hour, "task"},
		{"tasks: off", false, false, time.Hour, "task"},
		{"tasks: {ttl: 90s, optional: call}", true, true, 90 * time.Second, "call"},
		{"tasks: {mode: run, ttl: 24h}", false, true, 24 * time.Hour, "task"},
	} {
		t.Run("T-08 "+tt.keys, func(t *testing.T) {
			path := write(t, "servers:\n  a:\n    builtin: notebook\n    "+tt.keys+"\n")
			c, warnings, err := config.Load(config.Options{Path: path})
			if err != nil || len(warnings) != 0 {
				t.Fatalf("Load = %v, %v", warnings, err)
			}
			s := c.Servers[0]
			if s.HoldsTasks() != tt.holds || s.RunsTasks() != tt.runs || s.Tasks.Life() != tt.life || s.Tasks.Optional != tt.optional {
				t.Errorf("tasks are %+v, held %v, run %v", s.Tasks, s.HoldsTasks(), s.RunsTasks())
			}
		})
	}
	var zero settings.Server
	if !zero.HoldsTasks() || !zero.RunsTasks() || zero.Tasks.Life() != time.Hour {
		t.Error("without a configuration tasks are not as by default")
	}
}
