//go:build unix

package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// openFiles counts the descriptors of this process.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// alive reports whether a process runs. A zombie does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) || !procFS()
	}
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return !bytes.HasPrefix(state, []byte("Z"))
}

// dies waits for the end of a process after SIGKILL, which takes a moment on a busy
// machine.
func dies(pid int) bool {
	for deadline := time.Now().Add(patience); alive(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

func procFS() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}

func TestCommandStartErrors(t *testing.T) {
	for _, opts := range []CommandOptions{
		{},
		{Argv: []string{""}},
		{Argv: []string{"/nonexistent/server"}},
		{Argv: []string{os.Args[0]}, Dir: "/nonexistent"},
		{Argv: []string{os.Args[0]}, CloseGrace: -1},
	} {
		before := openFiles(t)
		if c, err := StartCommand(opts); err == nil {
			c.Close()
			t.Errorf("StartCommand(%q) = nil error", opts.Argv)
		}
		if after := openFiles(t); after != before {
			t.Errorf("StartCommand(%q) left %d files open", opts.Argv, after-before)
		}
	}
	_, err := StartCommand(CommandOptions{Argv: []string{"mcpbridge-no-such-program"}})
	if !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("StartCommand of an unknown program = %v, want exec.ErrNotFound", err)
	}
}

// readPID reads a child's first message, which says which process it is.
func readPID(t *testing.T, c *Command) int {
	t.Helper()
	var m struct{ PID int }
	if err := json.Unmarshal([]byte(mustRead(t, c)), &m); err != nil || m.PID == 0 {
		t.Fatalf("no pid: %v", err)
	}
	return m.PID
}

func TestM2L02CloseEndsChild(t *testing.T) {
	// The grace must suffice for SIGTERM on a busy machine, too.
	const grace, short = 2 * time.Second, 100 * time.Millisecond
	for _, tt := range []struct {
		name, child, say string
		grace            time.Duration
		wantErr, status  string
	}{
		{"SIGTERM", "deaf", "", grace, "", "signal: terminated"},
		{"SIGKILL", "stubborn", "", short, "killed", "signal: killed"},
		{"grandchild of a living child", "parent", "stay", grace, "", "signal: terminated"},
		{"grandchild of a stubborn child", "parent", "stay stubborn", short, "killed", "signal: killed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := startChild(t, tt.child, CommandOptions{CloseGrace: tt.grace, Env: map[string]string{"SAY": tt.say}})
			pid := readPID(t, c)
			start := time.Now()
			err := c.Close()
			if tt.wantErr == "" && err != nil || tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
				t.Errorf("Close = %v, want it to say %q", err, tt.wantErr)
			}
			if took := time.Since(start); took < tt.grace {
				t.Errorf("Close took %v, want the child to have had %v", took, tt.grace)
			}
			var exit *ExitError
			if !errors.As(c.Err(), &exit) || exit.Status != tt.status {
				t.Errorf("Err = %v, want %s", c.Err(), tt.status)
			}
			if !dies(pid) {
				t.Errorf("process %d still runs after Close", pid)
			}
			if again := c.Close(); again != err {
				t.Errorf("second Close = %v, want %v", again, err)
			}
		})
	}
}

// A child of a process that may soon be killed gets its signals sooner.
func TestM2L02CloseHurries(t *testing.T) {
	t.Parallel()
	hurry := make(chan struct{})
	close(hurry)
	c := startChild(t, "deaf", CommandOptions{CloseGrace: time.Minute, Hurry: hurry})
	readPID(t, c)
	start := time.Now()
	if err := c.Close(); err != nil {
		t.Errorf("Close = %v, want nil", err)
	}
	if took := time.Since(start); took < leastGrace || took > 30*time.Second {
		t.Errorf("Close took %v, want about %v", took, leastGrace)
	}
}

func TestM2L02GrandchildOfDeadChild(t *testing.T) {
	c := startChild(t, "parent", CommandOptions{})
	pid := readPID(t, c)
	if err := c.Write([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(); err != io.EOF {
		t.Errorf("Read after the child's end = %v, want EOF", err)
	}
	waitDone(t, c)
	if !dies(pid) {
		t.Errorf("grandchild %d outlived the child", pid)
	}
	if err := c.Close(); err != nil {
		t.Errorf("Close = %v, want nil", err)
	}
}

func TestM2L02NothingLeftOpen(t *testing.T) {
	before := openFiles(t)
	for range 5 {
		c := startChild(t, "echo", CommandOptions{})
		c.Close()
		c = startChild(t, "crash", CommandOptions{})
		waitDone(t, c)
		c.Close()
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files open after closing all children, %d before", after, before)
	}
}

// escape starts an idle process in a session of its own, which holds its streams, names
// it, and ends.
func escape() {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"=idle")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	fmt.Printf("{\"pid\":%d}\n{\"id\":2}\n", cmd.Process.Pid)
}

func init() { children["escape"] = escape }

// A process that has left the group can't be ended, and Close does not wait for it.
func TestCommandEscapedDescendant(t *testing.T) {
	c := startChild(t, "escape", CommandOptions{})
	waitDone(t, c)
	pid := readPID(t, c)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	if got, want := mustRead(t, c), `{"id":2}`; got != want {
		t.Errorf("Read after the child's end = %s, want %s", got, want)
	}
	if _, err := c.Read(); err != io.EOF {
		t.Errorf("last Read = %v, want EOF", err)
	}
	if !alive(pid) {
		t.Errorf("process %d, which holds the output, has ended: this proves nothing", pid)
	}
}

// A child that is busy reads later: neither it nor the connection ends before. Who waits leaves
// when they like. What nothing was written of is withdrawn; what was begun is written to its end.
func TestCommandBusyChild(t *testing.T) {
	c := startChild(t, "length", CommandOptions{})
	if err := c.Write([]byte(`{"id":1}`)); err != nil {
		t.Fatal(err)
	}
	mustRead(t, c)
	pid := c.cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	leave := make(map[string]context.CancelFunc)
	ended := make(map[string]chan error)
	write := func(name, text string) {
		var ctx context.Context
		ctx, leave[name] = context.WithCancel(t.Context())
		done := make(chan error, 1)
		ended[name] = done
		go func() { done <- c.WriteUntil(ctx, []byte(text)) }() // ends with ctx
	}
	long := `{"pad":"` + strings.Repeat("x", 1<<20) + `"}`
	write("begun", long)
	bridgetest.Eventually(t, "the pipe is full", func() bool {
		n, known := c.Unread()
		return known && n >= 1<<16 || !known && len(c.out.turn) > 0
	})
	write("behind", `{"id":3}`)
	write("withdrawn", `{"id":4}`)
	for _, name := range []string{"withdrawn", "begun"} {
		leave[name]()
		if err := <-ended[name]; errors.Is(err, ErrUnwritten) != (name == "withdrawn") || err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the writer of the message %s got %v", name, err)
		}
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{len(long) + 1, len(`{"id":3}`) + 1} {
		if got := mustRead(t, c); !strings.Contains(got, fmt.Sprintf(`"length":%d,`, want)) {
			t.Errorf("the child read %s, want %d bytes", got, want)
		}
	}
	if err := <-ended["behind"]; err != nil {
		t.Errorf("WriteUntil() = %v, want it written behind the other", err)
	}
	leave["behind"]()
	if err := c.Write([]byte(`{"id":5}`)); err != nil { // by a deadline that was not left behind
		t.Error(err)
	}
	mustRead(t, c)
}
