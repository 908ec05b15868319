package client

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
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
		w := WatchStart(t.Context(), s, servers.get)
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
		w.Stop()
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
		w := WatchStart(t.Context(), screen(term), servers.get)
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
		w.Stop()
		wantSeen(t, term)
	})
}

// Whoever waits for a server is told of it from a moment on, and not once it was heard of.
func TestWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term := new(bridgetest.Terminal)
		heard := WaitFor(t.Context(), screen(term), nil, "npx -y server")
		time.Sleep(startQuiet - startLook)
		synctest.Wait()
		wantSeen(t, term)
		time.Sleep(time.Second)
		synctest.Wait()
		wantSeen(t, term, "still waiting for: npx -y server (2s)")
		heard()
		wantSeen(t, term)
		heard() // which may be said twice
		WaitFor(t.Context(), screen(term), []string{"TERM=dumb"}, "x")()
		WaitFor(t.Context(), io.Discard, nil, "x")()
		if term.Writes() != 2 {
			t.Errorf("the terminal was written to %d times, want 2", term.Writes())
		}
	})
}
