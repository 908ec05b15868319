//go:build linux

package hostile

import (
	"context"
	"sync"
	"testing"
	"time"
)

// A part is one way of having the process keep much, tried n times from one address.
type part struct {
	n     int
	every time.Duration
	do    func(ctx context.Context, c *client, n int) // what it holds, it holds until ctx ends
	limit string                                      // what is meant to stop it
}

// withstand has parts tried at once, and wants the process to be within its memory, and
// guests to be served meanwhile and afterwards.
func (b *bridge) withstand(t *testing.T, parts ...part) {
	t.Helper()
	b.serveGuests(t, time.Second/2)
	before, _ := b.memory(t)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, p := range parts {
		all.Go(func() { p.run(ctx, newClient(b.addr, "127.0.0.2")) })
	}
	for end := time.Now().Add(3 * time.Minute); !b.hit(t, parts) && time.Now().Before(end); {
		b.serveGuests(t, time.Second/2)
	}
	b.serveGuests(t, time.Second)
	cancel()
	all.Wait()
	b.serveGuests(t, time.Second/2)
	_, most := b.memory(t)
	t.Logf("memory: %d MiB before, %d MiB at most", before>>20, most>>20)
	if most > mostMemory {
		t.Errorf("%d MiB of memory under attack, want at most %d", most>>20, mostMemory>>20)
	}
	for _, p := range parts {
		if b.refused(t, p.limit) == 0 {
			t.Errorf("limits.%s was never hit, want an attack that does so", p.limit)
		}
	}
}

// hit reports whether all limits that are meant to stop parts were hit.
func (b *bridge) hit(t *testing.T, parts []part) bool {
	for _, p := range parts {
		if b.refused(t, p.limit) == 0 {
			return false
		}
	}
	return true
}

// run tries the part, and waits for all tries to end.
func (p *part) run(ctx context.Context, c *client) {
	defer c.http.CloseIdleConnections()
	var all sync.WaitGroup
	defer all.Wait()
	for n := range p.n {
		all.Go(func() { p.do(ctx, c, n) })
		select {
		case <-time.After(p.every):
		case <-ctx.Done():
			return
		}
	}
}
