package main

import (
	"context"
	"fmt"
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

// A startWatch shows a person which servers are still starting and for how long, and what
// became of those. Its goroutine ends once none is starting, or when stop is called.
type startWatch struct {
	// Set by watchStart, read-only after.
	screen  *output.Screen
	servers func() []gateway.ServerSnapshot
	begun   time.Time
	cancel  context.CancelFunc
	done    chan struct{} // closed when run has returned

	named map[string]bool // the servers that were shown; owned by run
}

// watchStart begins to watch. The servers are being started since now.
func watchStart(ctx context.Context, s *output.Screen, servers func() []gateway.ServerSnapshot) *startWatch {
	ctx, cancel := context.WithCancel(ctx)
	w := &startWatch{
		screen: s, servers: servers, begun: time.Now(), cancel: cancel,
		done: make(chan struct{}), named: make(map[string]bool),
	}
	go w.run(ctx) // until stop, or no server is starting
	return w
}

// stop ends the watch and takes what it shows off the screen.
func (w *startWatch) stop() {
	w.cancel()
	<-w.done
}

func (w *startWatch) run(ctx context.Context) {
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
func (w *startWatch) look() bool {
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
func (w *startWatch) status(still []string, took time.Duration) []string {
	var lines []string
	for i, name := range still {
		if i == startLines {
			return append(lines, fmt.Sprintf("still starting: %d more", len(still)-i))
		}
		w.named[name] = true
		lines = append(lines, fmt.Sprintf("still starting: %s (%gs)", name, took.Seconds()))
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
