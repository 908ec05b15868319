package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// screen returns the screen of a terminal.
func screen(f *bridgetest.Terminal) *output.Screen {
	return output.NewScreen(f, func() int { return 40 })
}

func wantSeen(t *testing.T, f *bridgetest.Terminal, want ...string) {
	t.Helper()
	if got := f.Seen(); !slices.Equal(got, want) {
		t.Errorf("the terminal shows %q, want %q", got, want)
	}
}

// A stateList is servers as a test sets them.
type stateList struct {
	mu  sync.Mutex
	all []gateway.ServerSnapshot
}

func (l *stateList) set(name string, state gateway.State, err string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.all {
		if l.all[i].Name == name {
			l.all[i].State, l.all[i].Error = state, err
			return
		}
	}
	l.all = append(l.all, gateway.ServerSnapshot{Name: name, State: state, Error: err})
}

func (l *stateList) get() []gateway.ServerSnapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// A person sees who is still starting, for how long, and what became of it; log
// lines stay whole above that.
func TestShowsWhoIsStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var servers stateList
		for _, name := range []string{"quick", "files", "docs"} {
			servers.set(name, "starting", "")
		}
		term := new(bridgetest.Terminal)
		s := screen(term)
		log := slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		w := watchStart(t.Context(), s, servers.get)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		servers.set("quick", "ready", "")
		wantSeen(t, term)

		time.Sleep(time.Second)
		synctest.Wait()
		wantSeen(t, term, "still starting: files (2s)", "still starting: docs (2s)")
		log.Info("one")
		wantSeen(t, term, "level=INFO msg=one", "still starting: files (2s)", "still starting: docs (2s)")

		time.Sleep(10 * time.Second)
		synctest.Wait()
		wantSeen(t, term, "level=INFO msg=one", "still starting: files (12s)", "still starting: docs (12s)")

		servers.set("docs", "down", "no\nluck \x1b[2J")
		time.Sleep(time.Second)
		synctest.Wait()
		wantSeen(t, term, "level=INFO msg=one", "down: docs after 12s: no\\x0aluck \\x1b[2J", "still starting: files (13s)")

		servers.set("files", "ready", "")
		time.Sleep(time.Second)
		<-w.done // by itself
		log.Info("two")
		wantSeen(t, term, "level=INFO msg=one", "down: docs after 12s: no\\x0aluck \\x1b[2J", "ready: files after 13s", "level=INFO msg=two")
		w.stop()
	})
}

// What is shown goes when the daemon ends, and the goroutine with it.
func TestStartWatchStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var servers stateList
		for i := range startLines + 3 {
			servers.set(fmt.Sprintf("a-server-with-a-name-that-is-far-too-long-%d", i), "starting", "")
		}
		term := new(bridgetest.Terminal)
		w := watchStart(t.Context(), screen(term), servers.get)
		time.Sleep(3*time.Second + startLook/2)
		synctest.Wait()
		got := term.Seen()
		if len(got) != startLines+1 || len(got[0]) != 39 || got[startLines] != "still starting: 3 more" {
			t.Errorf("the terminal shows %q, want %d lines that are cut, and how many more there are", got, startLines)
		}
		// It is drawn anew when something has changed: once for each second.
		if term.Writes() != 2 {
			t.Errorf("the terminal was written to %d times, want 2", term.Writes())
		}
		w.stop()
		wantSeen(t, term)
	})
}

// stopOnceShown waits until the line is written, and where nobody wants it until it
// would have been, and then stops the program. It ends with that.
func stopOnceShown(ctx context.Context, f *bridgetest.Terminal, stop func(), line string, wanted bool) {
	defer stop()
	most := startQuiet + 1500*time.Millisecond
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
