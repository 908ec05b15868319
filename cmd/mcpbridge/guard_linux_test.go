package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// guardWord is the only argument of the guard.
const guardWord = "process-guard"

// guardOf returns the process id of the guard that a process has started, 0 if it has
// none.
func guardOf(t *testing.T, parent int) int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lines {
		text, _ := os.ReadFile(name) // it may have ended meanwhile
		if !strings.HasSuffix(string(text), "\x00"+guardWord+"\x00") {
			continue
		}
		dir := filepath.Dir(name)
		stat, _ := os.ReadFile(dir + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == fmt.Sprint(parent) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			return pid
		}
	}
	return 0
}

// The guard has little memory of its own, and knows nothing of the environment. The pages of
// the program's file are those of mcpbridge.
func TestGuardIsSmall(t *testing.T) {
	const most = 2 << 10 // KiB
	w := wrap(t, []string{"SECRET=hunter2"}, "--", os.Args[0], "notebook-on-stdio")
	w.send(modernRequest("1", "tools/list", ""))
	w.want("tools")
	pid := guardOf(t, w.cmd.Process.Pid)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil || kib > most {
		t.Errorf("the guard takes %d KiB, %v, want at most %d", kib, err, most)
	}
	t.Logf("%d KiB", kib)
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil || strings.Contains(string(env), "hunter2") {
		t.Errorf("the guard's environment is %q, %v", env, err)
	}
	_ = w.in.Close()
	_ = w.cmd.Wait()
	if syscall.Kill(pid, 0) == nil {
		t.Error("the guard is there after mcpbridge has ended")
	}
}

// A closed terminal ends wrap as SIGTERM does, also where its signal comes twice.
func TestHangup(t *testing.T) {
	mindHangups(t)
	file := filepath.Join(t.TempDir(), "pid")
	w := wrap(t, nil, "-v", "--", "sh", "-c", obstinate, "sh", file, os.Args[0])
	w.send(modernRequest("1", "tools/list", ""))
	w.want("tools")
	killLeft(t, file)
	for range 2 {
		if err := w.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // or the two are one
	}
	if err := w.cmd.Wait(); err != nil || !strings.Contains(w.log.String(), "stopped") {
		t.Errorf("wrap ended with %v; its log:\n%s", err, w.log)
	}
	if left := processes(t, file); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A process that was started to outlive its terminal does.
func TestHangupUnderNohup(t *testing.T) {
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, "sh", "-c", `trap "" HUP; exec "$@"`, "sh", bin, "serve", "--json", "--listen", "127.0.0.1:0", "--admin", "off")
	bridgetest.Eventually(t, "started", func() bool { return strings.Contains(c.out.String(), "endpoint") })
	if err := c.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // nothing is to happen
	if strings.Contains(c.err.String(), "draining") {
		t.Error("serve drains, though SIGHUP was ignored when it was started")
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("serve ended with %v", err)
	}
}
