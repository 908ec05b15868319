package layer_test

import (
	"slices"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/config/layer"
)

// A file that may be VS Code's is ours when a server has a key that no host has.
func TestOursByKey(t *testing.T) {
	shared := []string{"disabled", "command", "args", "env", "envFile", "cwd", "url", "serverUrl", "baseUrl", "headers", "type", "auth"}
	for _, name := range config.Keys().ByName["servers"].Each.Spelled() {
		text := `{"servers": {"a": {"` + name + `": 1}}}`
		if got, want := layer.IsHosts(text, config.Keys()), slices.Contains(shared, name); got != want {
			t.Errorf("with %s the file is a host's: %v, want %v", name, got, want)
		}
	}
}
