package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// obstinate is a server in a shell that ends neither with its input nor by SIGTERM,
// and a process beside it. It says first who leads its group. mcpbridge may start it
// more than once.
const obstinate = `trap "" TERM; echo $$ >> "$1"; sleep 60 & "$2" notebook-on-stdio; wait`

// processes returns what has not ended of the process groups that file names, one
// to a line.
func processes(t *testing.T, file string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	groups := strings.Fields(string(text))
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stats {
		if group, stat := processStatus(name); slices.Contains(groups, group) {
			lines = append(lines, stat)
		}
	}
	return lines
}

// status returns the group of a process and what the system says of it, or nothing
// if it has ended.
func processStatus(name string) (group, stat string) {
	text, err := os.ReadFile(name)
	_, rest, _ := strings.Cut(string(text), ") ") // after the name: state, parent, group
	f := strings.Fields(rest)
	if err != nil || len(f) < 3 || f[0] == "Z" || f[0] == "X" {
		return "", ""
	}
	return f[2], strings.TrimSpace(string(text))
}

// killLeft ends what a test that failed has left.
func killLeft(t *testing.T, file string) {
	t.Cleanup(func() {
		for _, stat := range processes(t, file) {
			if pid, err := strconv.Atoi(strings.Fields(stat)[0]); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL) // which may have ended meanwhile
			}
		}
	})
}

// A client that is killed leaves nothing behind: not mcpbridge, nor its server's
// process group, however obstinate.
func TestU04WrapUnderACrash(t *testing.T) {
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pid")
	client := exec.Command(os.Args[0], "client", bin, "wrap", "--", "sh", "-c", obstinate, "sh", file, os.Args[0])
	out, err := client.StdoutPipe()
	if err == nil {
		err = client.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	var pid int
	if _, err := fmt.Sscan(line, &pid); err != nil || !strings.Contains(line, `"tools":[`) {
		t.Fatalf("the client says %q, want a process id and the tools", line)
	}
	killLeft(t, file)
	if n := len(processes(t, file)); n < 3 {
		t.Fatalf("%d processes in the server's groups, want the shell and what it started", n)
	}
	begin := time.Now()
	if err := client.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = client.Wait() // it was killed
	bridgetest.Eventually(t, "gone", func() bool {
		_, self := processStatus(fmt.Sprintf("/proc/%d/stat", pid))
		return self == "" && len(processes(t, file)) == 0
	})
	took, most := time.Since(begin), 6*time.Second // 4 s, and 2 s for a busy machine
	if t.Logf("took %v", took); took > most {
		t.Errorf("mcpbridge and its server took %v to end, want at most %v", took, most)
	}
}

// The same where a call is in flight, a stream is open, and both pipes are closed.
func TestWrapClosedPipes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	w := wrap(t, nil, "--", "sh", "-c", obstinate, "sh", file, os.Args[0])
	w.send(modernRequest("1", "subscriptions/listen", todo))
	w.want("acknowledged")
	killLeft(t, file)
	w.edit("2", "x")
	_ = w.in.Close()
	_ = w.out.Close()
	_ = w.cmd.Wait() // with an error if it could not write
	if left := processes(t, file); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// What a set-up that failed half-way had started is ended with all that it started:
// a command that reads nothing, and has a child.
func TestU04FailedSetupLeavesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	got := runCommand(t.Context(), os.Environ(), "probe", "--timeout", "2s", "--", "sh", "-c", `echo $$ >> "$1"; sleep 60 & wait`, "sh", file)
	killLeft(t, file)
	if got.code != exitFailure || !strings.Contains(got.err, "does not answer") {
		t.Errorf("probe = %+v, want no verdict", got)
	}
	text, err := os.ReadFile(file)
	if n := len(strings.Fields(string(text))); err != nil || n != 1 {
		t.Errorf("%d processes started, %v, want one", n, err)
	}
	if left := processes(t, file); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
