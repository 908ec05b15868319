package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/install"
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
	for _, file := range []string{path, path + install.BackupEnding} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != 12345 || s.Gid != 23456 || info.Mode().Perm() != 0o640 {
			t.Errorf("%s is of %d:%d, %v", file, s.Uid, s.Gid, info.Mode())
		}
	}
}
