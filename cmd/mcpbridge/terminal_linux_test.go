package main

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest"
)

// terminal opens a terminal, of which nobody is at the other end.
func terminal(t *testing.T) *os.File {
	t.Helper()
	near, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() { _ = near.Close() })
	n, err := unix.IoctlGetInt(int(near.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(near.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	far, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() { _ = far.Close() })
	return far
}

// A person who types wrap is told what it is for, and what to type instead.
func TestWrapAtATerminal(t *testing.T) {
	tty := terminal(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--", "echo", "my hello"}, "-- echo 'my hello'"},
		{[]string{"https://docs.example.com/mcp"}, "https://docs.example.com/mcp"},
		{nil, "URL"},
	} {
		var out, errs bridgetest.Log
		p := process{args: append([]string{"mcpbridge", "wrap"}, tt.args...), stdin: tty, stdout: &out, stderr: &errs}
		code := exitCode(p.run(t.Context()), &errs)
		want := "mcpbridge: wrap is started by a desktop client, which writes messages to it; this is a terminal\n" +
			"mcpbridge: to try the server, write: mcpbridge call " + tt.want + "\n" +
			"mcpbridge: to serve it to clients by a URL, write: mcpbridge serve " + tt.want + "\n"
		if code != exitUsage || errs.String() != want || out.String() != "" {
			t.Errorf("wrap %q at a terminal = %d, %q, want %d, %q", tt.args, code, errs.String(), exitUsage, want)
		}
	}
}
