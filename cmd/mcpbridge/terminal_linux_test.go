package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// terminal opens a terminal, of which nobody is at the other end.
func terminal(t *testing.T) *os.File {
	t.Helper()
	_, far := terminals(t)
	return far
}

// terminals opens a terminal: what a program has, far, and what stands for the person.
func terminals(t *testing.T) (near, far *os.File) {
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
	far, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() { _ = far.Close() })
	return near, far
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

// At a terminal a token is made for a listener beyond loopback, and shown once, there
// alone.
func TestServeMakesATokenAtATerminal(t *testing.T) {
	near, tty := terminals(t)
	r, w := io.Pipe()
	p := process{args: []string{"mcpbridge", "serve", "--listen", "0.0.0.0:0", "--admin", "off"}, stdout: w, stderr: tty}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx); _ = w.Close() }() // ends with ctx
	out := bufio.NewReader(r)
	_, _ = out.ReadString('\n')
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
	screen, token := bufio.NewReader(near), ""
	for token == "" {
		text, err := screen.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		_, token, _ = strings.Cut(strings.TrimSpace(text), "Authorization: Bearer ")
	}
	go func() { _, _ = io.Copy(io.Discard, screen) }() // ends with the terminal
	url := strings.TrimSpace(line)
	if none, good := initializeAs(t, url, ""), initializeAs(t, url, "Bearer "+token); none != 401 || good != 200 {
		t.Errorf("without the token = %d, with it = %d, want 401 and 200", none, good)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("serve = %v", err)
	}
}
