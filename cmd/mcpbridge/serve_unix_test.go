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
