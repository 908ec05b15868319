package transport

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
)

// detaches is a command that starts a process in a session of its own, which heeds no
// SIGTERM, and says its id.
const detaches = `setsid sh -c 'trap "" TERM; echo "{\"pid\":$$}"; exec sleep "$0"' 301 2>&1 & exec cat`

// What a command has started in a session of its own is named in the log when the command
// ends, and ended if that is wanted.
func TestU04DetachedProcesses(t *testing.T) {
	for _, end := range []bool{false, true} {
		t.Run(fmt.Sprintf("end_detached: %v", end), func(t *testing.T) {
			var out bytes.Buffer // written by Close
			log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))
			c, err := StartCommand(CommandOptions{Argv: []string{"sh", "-c", detaches}, Name: "files", Logger: log, EndDetached: end})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			var pid int
			if _, err := fmt.Sscanf(mustRead(t, c), `{"pid":%d}`, &pid); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // or it outlives the test
			if err := c.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
			// It may be the shell still.
			if line, want := out.String(), fmt.Sprintf(` upstream=files pid=%d command="`, pid); strings.Count(line, want) != 1 || !strings.Contains(line, "301") {
				t.Errorf("the log has %q, want %q once, and the command", line, want)
			}
			if end && !dies(pid) || !end && !alive(pid) {
				t.Errorf("process %d is alive: %v", pid, alive(pid))
			}
		})
	}
}

// Processes without the mark are not touched, nor those of another command.
func TestU04DetachedByTheirMark(t *testing.T) {
	c := startChild(t, "echo", CommandOptions{EndDetached: true})
	other := startChild(t, "echo", CommandOptions{})
	if found := findDetached(c.mark); len(found) != 1 || found[0].pid != c.cmd.Process.Pid {
		t.Errorf("findDetached() = %v, want the command alone", found)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := other.Write([]byte(`{"id":1}`)); err != nil || mustRead(t, other) != `{"id":1}` {
		t.Errorf("another command is disturbed: %v", err)
	}
}
