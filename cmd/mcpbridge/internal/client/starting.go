package client

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/gateway"
)

const (
	// startQuiet is how long a server may take to start before a person is told.
	startQuiet = 2 * time.Second
	// startLook is how often it is looked who is still starting.
	startLook = 250 * time.Millisecond
	// startLines is how many servers are named at a time.
	startLines = 8
)

// A StartWatch shows a person which servers are still starting and for how long, and what
// became of those. Its goroutine ends once none is starting, or when Stop is called.
type StartWatch struct {
	// Set by WatchStart, read-only after.
	screen  *output.Screen
	doing   string // what the servers do, or whoever waits for them
	servers func() []gateway.ServerSnapshot
	begun   time.Time
	cancel  context.CancelFunc
	done    chan struct{} // closed when run has returned

	named map[string]bool // the servers that were shown; owned by run
}

// WatchStart begins to watch. The servers are being started since now. The caller stops it.
func WatchStart(ctx context.Context, s *output.Screen, servers func() []gateway.ServerSnapshot) *StartWatch {
	return watchStart(ctx, s, "still starting", servers)
}

// WaitFor shows a person at w that a server is still waited for, from a moment on until heard is
// called. It shows nobody anything if w is no terminal, or one that can't.
func WaitFor(ctx context.Context, w io.Writer, environ []string, server string) (heard func()) {
	s := output.ScreenOf(w)
	if s == nil || Dumb(environ) {
		return func() {}
	}
	starting := []gateway.ServerSnapshot{{Name: server, State: gateway.StateStarting}}
	return sync.OnceFunc(watchStart(ctx, s, "still waiting for", func() []gateway.ServerSnapshot { return starting }).Stop)
}

// Dumb reports whether lines of a terminal can't be changed.
func Dumb(environ []string) bool { return slices.Contains(environ, "TERM=dumb") }

func watchStart(ctx context.Context, s *output.Screen, doing string, servers func() []gateway.ServerSnapshot) *StartWatch {
	ctx, cancel := context.WithCancel(ctx)
	w := &StartWatch{
		screen: s, doing: doing, servers: servers, begun: time.Now(), cancel: cancel,
		done: make(chan struct{}), named: make(map[string]bool),
	}
	go w.run(ctx) // until Stop, or no server is starting
	return w
}

// Stop ends the watch and takes what it shows off the screen.
func (w *StartWatch) Stop() {
	w.cancel()
	<-w.done
}

func (w *StartWatch) run(ctx context.Context) {
	defer close(w.done)
	defer w.screen.Show(nil)
	look := time.NewTicker(startLook)
	defer look.Stop()
	for w.look() {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// look brings the screen up to date. It reports whether a server is still starting.
func (w *StartWatch) look() bool {
	took := time.Since(w.begun).Truncate(time.Second)
	var still, ended []string
	for _, s := range w.servers() {
		switch {
		case s.State == gateway.StateStarting:
			still = append(still, s.Name)
		case w.named[s.Name]:
			delete(w.named, s.Name)
			ended = append(ended, outcome(s, took))
		}
	}
	if took >= startQuiet {
		w.screen.Show(w.status(still, took))
	}
	for _, line := range ended {
		_, _ = output.Printf(w.screen, "%s\n", line) // it is a courtesy
	}
	return len(still) > 0
}

// status returns a line for each server that is still starting, up to a bound.
func (w *StartWatch) status(still []string, took time.Duration) []string {
	var lines []string
	for i, name := range still {
		if i == startLines {
			return append(lines, fmt.Sprintf("%s: %d more", w.doing, len(still)-i))
		}
		w.named[name] = true
		lines = append(lines, fmt.Sprintf("%s: %s (%gs)", w.doing, name, took.Seconds()))
	}
	return lines
}

// outcome says what became of a server that was starting.
func outcome(s gateway.ServerSnapshot, took time.Duration) string {
	line := fmt.Sprintf("%s: %s after %gs", s.State, s.Name, took.Seconds())
	if s.Error != "" {
		line += ": " + s.Error
	}
	return line
}
