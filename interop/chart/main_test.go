//go:build linux

package chart

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// bridge is mcpbridge, which needs no other file: it runs in a root of its own. MCPBRIDGE
// names one that is built already.
var bridge string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chart")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if bridge = os.Getenv("MCPBRIDGE"); bridge != "" {
		return m.Run()
	}
	bridge = filepath.Join(dir, "mcpbridge")
	cmd := exec.Command("go", "-C", "../..", "build", "-o", bridge, "./cmd/mcpbridge")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %s\n", err, out)
		return 1
	}
	return m.Run()
}
