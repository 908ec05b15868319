package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// check --connect says of each server whether it is there.
func TestCheckConnect(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(oneNotebook)
	if got := runCommand(t.Context(), nil, "check", file, "--connect"); got.code != 0 || !strings.Contains(got.out, "SERVER  STATE  REASON\na       ready") {
		t.Errorf("check --connect = %+v", got)
	}
	write(oneNotebook + "  b: {url: 'http://127.0.0.1:1/mcp'}\n")
	got := runCommand(t.Context(), nil, "check", file, "--connect")
	if got.code != exitFailure || !strings.Contains(got.out, "b       down") || !strings.Contains(got.err, "1 of 2 servers can't be used") {
		t.Errorf("check --connect of a server that is not there = %+v", got)
	}
}
