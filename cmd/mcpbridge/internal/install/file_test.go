package install

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

// What the host writes after the file was read is not lost: the edit is made anew.
func TestInstallLosesNoWriteOfTheHost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	before, after := `{"mcpServers": {"a": {"command": "x"}}}`, `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}`
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	edit := &hostfile.Edit{Host: hostfile.All[0], Binary: "/bin/true"}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Wrap(edit, f)
	if err == nil {
		err = os.WriteFile(path, []byte(after), 0o600) // the host
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(f); !errors.Is(err, ErrWritten) {
		t.Errorf("apply = %v, want %v", err, ErrWritten)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != after {
		t.Errorf("the file has %s, %v", text, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
	if f, err = Open(path); err == nil {
		c, err = Wrap(edit, f)
	}
	if err = errors.Join(err, c.Apply(f)); err != nil {
		t.Errorf("again: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || strings.Count(string(text), "/bin/true") != 2 {
		t.Errorf("the file has %s, %v, want both servers wrapped", text, err)
	}
}
