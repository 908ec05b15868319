package group

import (
	"context"
	"sync"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
)

// A gateKey is what is read: lists of a client, of one member or of every one.
type gateKey struct {
	owners.Key
	member int
}

const everyMember = -1

// A gate lets one goroutine at a time do something of a key, so that what many need at once is
// done once. Its zero value is open, and it is safe for concurrent use.
type gate struct {
	// mu guards busy. It is held for map work only.
	mu   sync.Mutex
	busy map[gateKey]chan struct{} // closed when the goroutine is done
}

// enter waits, once, while another goroutine does what the caller wants to do, or until ctx ends.
// The caller then looks whether that is still to be done, and calls leave.
func (g *gate) enter(ctx context.Context, k gateKey) (leave func()) {
	g.mu.Lock()
	if g.busy == nil {
		g.busy = make(map[gateKey]chan struct{})
	}
	done, taken := g.busy[k]
	if !taken {
		done = make(chan struct{})
		g.busy[k] = done
	}
	g.mu.Unlock()
	if !taken {
		return func() {
			g.mu.Lock()
			delete(g.busy, k)
			g.mu.Unlock()
			close(done)
		}
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	return func() {}
}
