//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// A command that ignores the end of its input and SIGTERM is killed before
// serve ends, and does not make the shutdown longer than was configured by more
// than killing takes.
func TestServeLeavesNoChild(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	const script = `trap "" TERM; echo $$ > "$1.new"; mv "$1.new" "$1"; exec sleep 60`
	s := serve(t, []string{"PATH=" + os.Getenv("PATH"), "MCPBRIDGE_DRAIN=600ms"}, "--", "sh", "-c", script, "sh", pidFile)
	var pid int
	bridgetest.Eventually(t, "started", func() bool {
		text, err := os.ReadFile(pidFile)
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	})
	begin := time.Now()
	s.stop()
	if took, most := time.Since(begin), 600*time.Millisecond+killTime; took > most {
		t.Errorf("serve took %v to end, want at most %v", took, most)
	}
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("looking for process %d: %v, want %v", pid, err, syscall.ESRCH)
	}
}

// A socket is its user's by its mode: clients that prove who they are change nothing there.
func TestAdminSocketWantsNoToken(t *testing.T) {
	dir, err := os.MkdirTemp("", "socket") // its path is short, unlike that of t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "admin.sock")
	path := configFile(t, "state_dir: "+dir+"\n"+proved+"servers: {a: {builtin: notebook}}\n")
	serve(t, nil, path, "--admin", "unix:"+socket)
	if got := runCommand(t.Context(), nil, "top", "--json", "--admin", "unix:"+socket); got.code != 0 {
		t.Errorf("top = %+v", got)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has the mode %v, %v", info.Mode(), err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*.token")); len(files) > 0 {
		t.Errorf("there is %q", files)
	}
}
