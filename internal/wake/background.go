package wake

import (
	"context"
	"sync"
)

// A Background runs what nobody waits for, until Close. It is safe for concurrent use.
type Background struct {
	live    context.Context // ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup

	// mu guards closed, and that running grows no more then.
	mu     sync.Mutex
	closed bool
}

// NewBackground returns a Background. The caller calls Close.
func NewBackground() *Background {
	g := new(Background)
	g.live, g.stop = context.WithCancel(context.Background())
	return g
}

// Start runs f in a goroutine of its own, and reports whether it does: not if Close was called. f
// returns soon after its context has ended.
func (g *Background) Start(f func(context.Context)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.running.Go(func() { f(g.live) }) // Close ends it
	}
	return !g.closed
}

// Live returns a context that ends with Close.
func (g *Background) Live() context.Context { return g.live }

// Close ends what runs, and waits for it.
func (g *Background) Close() {
	g.stop()
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.running.Wait()
}
