package settings_test

import (
	"fmt"
	"os"
	"reflect"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
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
