package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// screen returns the screen of a terminal.
func screen(f *bridgetest.Terminal) *output.Screen {
	return output.NewScreen(f, func() int { return 40 })
}

// stopOnceShown waits until the line is written, and where nobody wants it until it
// would have been, and then stops the program. It ends with that.
func stopOnceShown(ctx context.Context, f *bridgetest.Terminal, stop func(), line string, wanted bool) {
	defer stop()
	most := 3500 * time.Millisecond
	if wanted {
		most = bridgetest.Patience
	}
	for begin := time.Now(); ctx.Err() == nil && time.Since(begin) < most; time.Sleep(10 * time.Millisecond) {
		if f.WasWritten(line) {
			return
		}
	}
}

// Only a person at a terminal is shown anything, and nobody who wants JSON.
func TestShowsStartingOnTerminalsAlone(t *testing.T) {
	const line = "still starting: sleep ("
	for _, tt := range []struct {
		name    string
		args    []string
		environ []string
		stderr  func(*bridgetest.Terminal) io.Writer
		want    bool
	}{
		{"terminal", nil, nil, func(f *bridgetest.Terminal) io.Writer { return screen(f) }, true},
		{"no terminal", nil, nil, func(f *bridgetest.Terminal) io.Writer { return f }, false},
		{"JSON", []string{"--json"}, nil, func(f *bridgetest.Terminal) io.Writer { return screen(f) }, false},
		{"a terminal that can't", nil, []string{"TERM=dumb"}, func(f *bridgetest.Terminal) io.Writer { return screen(f) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			term := new(bridgetest.Terminal)
			go stopOnceShown(ctx, term, cancel, line, tt.want)
			args := slices.Concat([]string{"mcpbridge", "serve", "--listen", "127.0.0.1:0", "--admin", "off"}, tt.args, []string{"--", "sleep", "30"})
			p := process{args: args, environ: append(tt.environ, "MCPBRIDGE_DRAIN=1s"), stdout: io.Discard, stderr: tt.stderr(term)}
			if err := p.run(ctx); err != nil {
				t.Fatal(err)
			}
			if got := term.WasWritten(line); got != tt.want {
				t.Errorf("shown: %v, want %v; the terminal shows %q", got, tt.want, term.Seen())
			}
			if left := strings.Join(term.Seen(), "\n"); strings.Contains(left, line) {
				t.Errorf("it was left on the terminal: %s", left)
			}
		})
	}
}

// Whoever asks a server that takes long is told so at a terminal, and it is gone before the answer.
func TestShowsWaitingForServer(t *testing.T) {
	term := new(bridgetest.Terminal)
	out := new(bridgetest.Log)
	p := process{args: []string{"mcpbridge", "ls", "--", "sh", "-c", "sleep 3; exec " + os.Args[0] + " notebook-on-stdio"}, environ: append(os.Environ(), "GORACE=atexit_sleep_ms=0"), stdout: out, stderr: screen(term)}
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !term.WasWritten("still waiting for: sh -c sleep 3") || len(term.Seen()) > 0 || !strings.Contains(out.String(), "edit_note") {
		t.Errorf("the terminal shows %q, and ls printed %s", term.Seen(), out)
	}
}
