package main

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// mindHangups has processes that are started not ignore SIGHUP, even if this one does: it may
// have been started by nohup.
func mindHangups(t *testing.T) {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(got) })
}

// serveApart starts serve with a file in a session of its own, whose terminal is tty; nil for
// none.
func serveApart(t *testing.T, tty *os.File) *child {
	t.Helper()
	mindHangups(t)
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(oneNotebook), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.Command(bin, "serve", file, "--watch=false", "--json", "--listen", "127.0.0.1:0", "--admin", "off"), out: &bridgetest.Log{}, err: &bridgetest.Log{}}
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.err
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if tty != nil {
		c.cmd.Stdin, c.cmd.SysProcAttr.Setctty = tty, true
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // errors if it has ended, as it should have
		_ = c.cmd.Wait()
	})
	bridgetest.Eventually(t, "started", func() bool { return strings.Contains(c.out.String(), "endpoint") })
	return c
}

// reload sends SIGHUP, and waits for what that does.
func (c *child) reload(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	bridgetest.Eventually(t, "reloaded", func() bool { return strings.Contains(c.err.String(), "configuration was reloaded") })
}

// SIGHUP has a service read its configuration again, and one at a terminal too, as long as
// there is a terminal.
func TestHangupReloads(t *testing.T) {
	near, far := terminals(t)
	for name, tty := range map[string]*os.File{"service": nil, "terminal": far} {
		t.Run(name, func(t *testing.T) {
			c := serveApart(t, tty)
			c.reload(t)
			if tty != nil {
				_ = far.Close()
				_ = near.Close() // the terminal is gone: the system sends SIGHUP
			} else if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- c.cmd.Wait() }() // ends with the process
			select {
			case err := <-ended:
				if err != nil || !strings.Contains(c.err.String(), "stopped") {
					t.Errorf("serve ended with %v; its log:\n%s", err, c.err)
				}
			case <-time.After(bridgetest.Patience):
				t.Errorf("serve goes on; its log:\n%s", c.err)
			}
		})
	}
}
