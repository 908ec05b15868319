package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// watch runs a command that has no end of its own at a terminal, until do has returned and
// what is wanted is there, and fails if anything steers the terminal.
func watch(t *testing.T, p process, want string, do func(*typescript)) {
	t.Helper()
	s := record(t)
	if p.stderr = s.tty; p.stdout == nil {
		p.stdout = s.tty
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- exitCode(p.run(ctx), s.tty) }() // ends with ctx
	do(s)
	bridgetest.Eventually(t, want+" at the terminal", func() bool { return strings.Contains(s.String(), want) })
	cancel()
	<-ended
	s.check(t, strings.Join(p.args[:2], " "), want)
}

// What clients and servers say steers no terminal at which somebody looks on for long.
func TestViewsTakeTerminalControl(t *testing.T) {
	list := steering()
	s := serve(t, nil, hostile(t))
	admin := []string{"--admin", strings.TrimPrefix(s.Admin, "http://")}
	call := func(seen *typescript) {
		bridgetest.Eventually(t, "the last text at the terminal", func() bool {
			for _, bad := range list {
				sendAs(t, s.Endpoints[0].URL, bad)
			}
			return seen == nil || strings.Contains(seen.String(), "G0")
		})
	}
	watch(t, process{args: append([]string{"mcpbridge", "tail"}, admin...)}, `x1b[2J`, call)
	watch(t, process{args: append([]string{"mcpbridge", "top", "--every", "200ms"}, admin...)}, "SERVER", func(*typescript) { call(nil) })

	stdin, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer stdin.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	wrapped := process{args: []string{"mcpbridge", "wrap", "--", "sh", "-c", noisy(t, list) + "exec cat >/dev/null"},
		environ: []string{"PATH=" + os.Getenv("PATH"), "MCPBRIDGE_LOG__LEVEL=debug"}, stdin: stdin, stdout: null}
	watch(t, wrapped, noiseEnds, func(*typescript) {
		_, _ = fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":%q,"version":"1"}}}`+"\n", "c\\u001b[2J")
	})
}
