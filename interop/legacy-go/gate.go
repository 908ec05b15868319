package main

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// A gate stands before the MCP handler and can end its GET streams, and those
// alone: sessions, and what they are subscribed to, stay.
type gate struct {
	next http.Handler // set before it serves

	// mu guards the fields below.
	mu    sync.Mutex
	open  map[*getStream]struct{}
	until time.Time // GET is answered with 503 before
}

// A getStream is one open GET response.
type getStream struct {
	stop   context.CancelFunc
	abrupt bool // guarded by gate.mu: the connection ends in the middle
	done   chan struct{}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		g.next.ServeHTTP(w, r)
		return
	}
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	s := &getStream{stop: stop, done: make(chan struct{})}
	if !g.enter(s) {
		http.Error(w, "the gate is closed for a while", http.StatusServiceUnavailable)
		return
	}
	g.next.ServeHTTP(w, r.WithContext(ctx))
	if g.leave(s) {
		panic(http.ErrAbortHandler) // net/http closes the connection without a word
	}
}

func (g *gate) enter(s *getStream) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Now().Before(g.until) {
		return false
	}
	if g.open == nil {
		g.open = make(map[*getStream]struct{})
	}
	g.open[s] = struct{}{}
	return true
}

func (g *gate) leave(s *getStream) (abrupt bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, s)
	close(s.done)
	return s.abrupt
}

// cut ends all GET streams, waits until the SDK has let go of them, and returns
// how many there were. New ones are refused for as long as hold says.
func (g *gate) cut(abrupt bool, hold time.Duration) int {
	g.mu.Lock()
	g.until = time.Now().Add(hold)
	var ended []*getStream
	for s := range g.open {
		s.abrupt = abrupt
		s.stop()
		ended = append(ended, s)
	}
	g.mu.Unlock()
	for _, s := range ended {
		<-s.done
	}
	return len(ended)
}
