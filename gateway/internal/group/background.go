package group

import (
	"context"
	"sync"
)

// A background runs what no request waits for, until close.
type background struct {
	live    context.Context // ends with close
	stop    context.CancelFunc
	running sync.WaitGroup

	// mu guards closed, and that running grows no more then.
	mu     sync.Mutex
	closed bool
}

func newBackground() *background {
	g := new(background)
	g.live, g.stop = context.WithCancel(context.Background())
	return g
}

// start runs f in a goroutine of its own, and reports whether it does: not if close was called. f
// returns soon after its context has ended.
func (g *background) start(f func(context.Context)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.running.Go(func() { f(g.live) }) // close ends it
	}
	return !g.closed
}

// close ends what runs, and waits for it.
func (g *background) close() {
	g.stop()
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.running.Wait()
}
