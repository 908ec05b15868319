package process

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// markOf is the mark of commands that this test starts, and of no other process.
var markOf = "STARTED_BY_MCPBRIDGE=test " + strconv.Itoa(os.Getpid())

// newPipe returns the end of a pipe that a command reads from, and its inode.
func newPipe(t *testing.T) (*os.File, uint64) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	var stat syscall.Stat_t
	if err := syscall.Fstat(int(r.Fd()), &stat); err != nil {
		t.Fatal(err)
	}
	return r, stat.Ino
}

// A command that was being started is found by its pipe or by its mark, and no other process is,
// not even this one, which has the pipe, too.
func TestStartedOf(t *testing.T) {
	mine, inode := newPipe(t)
	other, _ := newPipe(t)
	want := make(map[int]bool)
	for _, tt := range []struct {
		name   string
		script string
		stdin  *os.File
		env    []string // besides PATH
		found  bool
	}{
		{"reads from the pipe", "exec sleep 60", mine, nil, true},
		{"reads from another", "exec sleep 60", other, nil, false},
		{"has the mark, and another input", "exec sleep 60 </dev/null", other, []string{"A=b", markOf}, true},
		{"has a mark that begins like it", "exec sleep 60 </dev/null", other, []string{markOf + "0"}, false},
		{"has it within an entry", "exec sleep 60 </dev/null", other, []string{"A=" + markOf}, false},
		{"has no environment", "exec env -i sleep 60 </dev/null", other, nil, false},
		{"its leader has ended and has left another", "sleep 60 </dev/null & exit", mine, []string{markOf}, true},
	} {
		cmd := exec.Command("sh", "-c", tt.script)
		cmd.Stdin, cmd.Env = tt.stdin, append([]string{"PATH=" + os.Getenv("PATH")}, tt.env...)
		leader, ended := start(t, cmd)
		if strings.HasSuffix(tt.script, "exit") {
			_ = endOf(t, ended)
		}
		if tt.found {
			want[leader] = true
		}
		t.Logf("group %d %s", leader, tt.name)
	}
	if got := startedOf(map[uint64]string{inode: markOf}); !maps.Equal(got, want) {
		t.Errorf("startedOf = %v, want %v", got, want)
	}
	if got := startedOf(nil); len(got) > 0 {
		t.Errorf("startedOf(nothing) = %v, want none", got)
	}
}

// A command without a mark is not taken for any process whose environment has an empty entry: all
// of these would be ended.
func TestHardeningEmptyMark(t *testing.T) {
	r, inode := newPipe(t)
	cmd := exec.Command("sleep", "60")
	cmd.Stdin = r
	leader, _ := start(t, cmd)
	start(t, exec.Command("sleep", "60"))
	if got := startedOf(map[uint64]string{inode: ""}); !maps.Equal(got, map[int]bool{leader: true}) {
		t.Errorf("startedOf(a pipe without a mark) = %v, want %d alone", got, leader)
	}
}

// The start time of a process is found whatever its name, which it chooses itself. An id that no
// process has has none.
func TestBegun(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const odd = "a) S 1 1 (b" // has the end of a name, and more fields
	path := filepath.Join(t.TempDir(), odd)
	if err := os.Symlink(program, path); err != nil {
		t.Fatal(err)
	}
	r, _ := newPipe(t)
	cmd := exec.Command(path, Word) // waits for input
	cmd.Stdin = r
	pid, _ := start(t, cmd)
	if name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm"); string(name) != odd+"\n" {
		t.Fatalf("the process is called %q, want %q", name, odd)
	}
	own, err := strconv.Atoi(begun(os.Getpid()))
	if err != nil || own == 0 {
		t.Fatalf("begun(this process) = %q, want clock ticks", begun(os.Getpid()))
	}
	const hour = 3600 * 100 // in ticks; the fields beside it are 0, and a number of bytes
	if then, err := strconv.Atoi(begun(pid)); err != nil || then < own || then > own+hour {
		t.Errorf("begun(a process of this test) = %q, want soon after %d", begun(pid), own)
	}
	if got := begun(1 << 30); got != "" {
		t.Errorf("begun(no process) = %q, want none", got)
	}
}

// The watchdog keeps no folder in use, and once its input ends it ends what it was told of. A last
// line that was cut counts for nothing: its number may be that of another group.
func TestWatchdog(t *testing.T) {
	left, _, _ := startReady(t, "echo ready; exec sleep 60")
	told, _, ended := startReady(t, "echo ready; exec sleep 60")
	cmd := exec.Command(os.Args[0], Word)
	cmd.Dir = t.TempDir()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pid, over := start(t, cmd)
	bridgetest.Eventually(t, "out of its folder", func() bool {
		dir, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd") // not before it runs
		return dir == "/"
	})
	if _, err := fmt.Fprintf(in, "group %d\ngroup %d", told, left); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	if err := endOf(t, over); err != nil {
		t.Errorf("the watchdog ended with %v", err)
	}
	_ = endOf(t, ended) // by a signal
	if err := syscall.Kill(-left, 0); err != nil {
		t.Errorf("the group of the line that was cut: %v, want it left alone", err)
	}
}
