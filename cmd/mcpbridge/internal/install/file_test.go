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

// A project's file that has no servers does not hide the user's.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")}
	codex := hostfile.Named("codex")
	if got := Find(codex, files); got != "" {
		t.Errorf("found %s, want nothing", got)
	}
	write(t, files[1], "model = \"m\"\n")
	if got := Find(codex, files); got != files[1] {
		t.Errorf("found %s, want what is there", got)
	}
	write(t, files[2], "[mcp_servers.a]\ncommand = \"x\"\n")
	if got := Find(codex, files); got != files[2] {
		t.Errorf("found %s, want what has servers", got)
	}
	for _, text := range []string{"mcp_servers.b.command = \"x\"\n", "mcp_servers = {"} {
		write(t, files[0], text)
		if got := Find(codex, files); got != files[0] {
			t.Errorf("with %s, found %s, want that", text, got)
		}
	}
}
