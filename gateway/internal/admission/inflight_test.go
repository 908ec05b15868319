package admission

import (
	"net/netip"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

func shareAt(n int) mcp.Share {
	return mcp.NewShare(mcp.Anonymous, netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}))
}

// counters returns how many shares have a counter.
func (f *Counter) counters() (n int) {
	f.by.Range(func(any, any) bool { n++; return true })
	return n
}

// newCounter returns a Counter with limits.
func newCounter(all, each int) *Counter {
	f := &Counter{}
	f.Bound(all, each)
	return f
}

// Shares come and go at will; what is kept of those without requests is bounded.
func TestInflightForgetsShares(t *testing.T) {
	f := newCounter(1<<20, 1)
	var places []Slot
	for n := range 3 * maxIdle {
		p, limit, _ := f.Enter(shareAt(n))
		if limit != nil {
			t.Fatalf("share %d is refused: %s", n, limit.Key)
		}
		places = append(places, p)
	}
	if _, limit, _ := f.Enter(shareAt(1)); limit != limits.RequestsEach {
		t.Errorf("limit = %+v for the second request of a share, want requests_each", limit)
	}
	for _, p := range places {
		p.Leave()
	}
	if n := f.counters(); n > maxIdle || int64(n) != f.shares.Load() || f.all.Load() != 0 {
		t.Errorf("%d counters, %d by count, for %d requests, want at most %d, as many, and none", n, f.shares.Load(), f.all.Load(), maxIdle)
	}
	if _, limit, _ := f.Enter(shareAt(1)); limit != nil {
		t.Errorf("limit = %+v for a share that is idle", limit)
	}
}

// However many enter and leave at once, all are counted out in the end.
func TestInflightCountsOut(t *testing.T) {
	f := newCounter(1<<20, 1<<20)
	f.shares.Store(maxIdle) // counters are taken out at once
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range 20_000 {
				p, _, _ := f.Enter(shareAt(n % 3))
				p.Leave()
			}
		})
	}
	wg.Wait()
	if n, all := f.counters(), f.all.Load(); n != 0 || all != 0 || f.shares.Load() != maxIdle {
		t.Errorf("%d counters, %d requests, %d shares left, want none, none and %d", n, all, f.shares.Load(), maxIdle)
	}
}

func BenchmarkInflight(b *testing.B) {
	f := newCounter(100, 100)
	b.ReportAllocs()
	for b.Loop() {
		p, _, _ := f.Enter(shareAt(1))
		p.Leave()
	}
}
