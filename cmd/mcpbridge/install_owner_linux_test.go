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

// What is moved under sudo is that user's, too, with every folder that was made for it: the host
// starts what reads it as that user.
func TestInstallAllKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	dir := t.TempDir()
	path, state := filepath.Join(dir, "mcp.json"), filepath.Join(dir, "a", "state")
	if err := errors.Join(os.WriteFile(path, []byte(`{"mcpServers": {"a": {"command": "x"}}}`), 0o644), os.Chown(path, 12345, 23456)); err != nil {
		t.Fatal(err)
	}
	if got := runCommand(t.Context(), []string{"MCPBRIDGE_STATE_DIR=" + state}, "wrap", "--install", "cursor", "--all", "--file", path, "--binary", "/bin/true"); got.code != 0 {
		t.Fatal(got)
	}
	folder := movedFolder(t, state)
	for file, mode := range map[string]os.FileMode{
		path: 0o644, filepath.Dir(state): 0o700, state: 0o700, filepath.Dir(folder): 0o700, folder: 0o700,
		filepath.Join(folder, "servers.yaml"): 0o600, filepath.Join(folder, "before.json"): 0o600, filepath.Join(folder, "record.json"): 0o600,
	} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != 12345 || s.Gid != 23456 || info.Mode().Perm() != mode {
			t.Errorf("%s is of %d:%d, %v", file, s.Uid, s.Gid, info.Mode())
		}
	}
}
