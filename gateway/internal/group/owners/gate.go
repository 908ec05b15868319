package owners

import (
	"context"
	"sync"
)

// A GateKey is what is read: lists of a client, of one member or of every one.
type GateKey struct {
	Key
	Member int // its place
}

// EveryMember is the Member of a GateKey for what is read of each.
const EveryMember = -1

// A Gate lets one goroutine at a time do something of a key, so that what many need at once is
// done once. Its zero value is open, and it is safe for concurrent use.
type Gate struct {
	// mu guards busy. It is held for map work only.
	mu   sync.Mutex
	busy map[GateKey]chan struct{} // closed when the goroutine is done
}

// Enter waits, once, while another goroutine does what the caller wants to do, or until ctx ends.
// The caller then looks whether that is still to be done, and calls leave.
func (g *Gate) Enter(ctx context.Context, k GateKey) (leave func()) {
	g.mu.Lock()
	if g.busy == nil {
		g.busy = make(map[GateKey]chan struct{})
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
