package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

// Under sudo the file and its copy stay those of their user, who could change them no more.
func TestInstallKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := errors.Join(os.WriteFile(path, []byte(`{"mcpServers": {"a": {"command": "x"}}}`), 0o640), os.Chown(path, 12345, 23456)); err != nil {
		t.Fatal(err)
	}
	if got := runCommand(t.Context(), nil, "wrap", "--install", "cursor", "--file", path, "--binary", "/bin/true"); got.code != 0 {
		t.Fatal(got)
	}
	for _, file := range []string{path, path + backupEnding} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != 12345 || s.Gid != 23456 || info.Mode().Perm() != 0o640 {
			t.Errorf("%s is of %d:%d, %v", file, s.Uid, s.Gid, info.Mode())
		}
	}
}

// What the host writes after the file was read is not lost: the edit is made anew.
func TestInstallLosesNoWriteOfTheHost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	before, after := `{"mcpServers": {"a": {"command": "x"}}}`, `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}`
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	edit := &hostfile.Edit{Host: hostfile.All[0], Binary: "/bin/true"}
	f, err := openInstallFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := wrapServers(edit, f)
	if err == nil {
		err = os.WriteFile(path, []byte(after), 0o600) // the host
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.apply(f); !errors.Is(err, errWritten) {
		t.Errorf("apply = %v, want %v", err, errWritten)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != after {
		t.Errorf("the file has %s, %v", text, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
	if got := runCommand(t.Context(), nil, "wrap", "--install", "cursor", "--file", path, "--binary", "/bin/true"); got.code != 0 {
		t.Errorf("again: %+v", got)
	}
	if text, err := os.ReadFile(path); err != nil || strings.Count(string(text), "/bin/true") != 2 {
		t.Errorf("the file has %s, %v, want both servers wrapped", text, err)
	}
}
