package settings_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

// A quirk is tolerated unless its name, or the word for all, is off.
func TestQuirksOff(t *testing.T) {
	for text, want := range map[string][2]bool{ // whether accept and header-revision are off
		"":                     {false, false},
		"quirks: {}":           {false, false},
		"quirks: off":          {true, true},
		"quirks: {accept: on}": {false, false},
		"quirks: {accept: off, header-revision: on}": {true, false},
	} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte("servers: {a: {builtin: notebook, "+text+"}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, _, err := config.Load(config.Options{Path: path})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		q := c.Servers[0].Quirks
		if got := [2]bool{q.Off("accept"), q.Off("header-revision")}; got != want {
			t.Errorf("with %q off: %v, want %v", text, got, want)
		}
	}
	c, _, err := config.Load(config.Options{Servers: []config.Server{{Name: "a", Builtin: "notebook"}}, Environ: []string{"MCPBRIDGE_SERVERS__A__QUIRKS=off"}})
	if err != nil || !c.Servers[0].Quirks.Off("accept") {
		t.Errorf("the environment has not switched off all quirks: %v", err)
	}
}
