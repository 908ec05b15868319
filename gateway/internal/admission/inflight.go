package admission

import (
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// maxIdle is the number of shares above which the counters of shares without requests in
// flight are removed. Most such shares soon send another request.
const maxIdle = 1024

// A Counter counts the HTTP requests that are being served, without a global lock. Safe for
// concurrent use.
type Counter struct {
	max, each atomic.Int64 // the limits

	all    atomic.Int64
	by     sync.Map     // mcp.Share -> *atomic.Int64, below zero once it is removed
	shares atomic.Int64 // the number of counters in by
}

// A Slot counts one request in flight.
type Slot struct {
	f     *Counter
	share mcp.Share
	mine  *atomic.Int64 // the share's counter; nil if it is not counted for a share
}

// Leave frees the slot.
func (p Slot) Leave() {
	p.f.all.Add(-1)
	if p.mine == nil {
		return
	}
	if p.mine.Add(-1) == 0 && p.f.shares.Load() > maxIdle && p.mine.CompareAndSwap(0, -1) {
		p.f.by.CompareAndDelete(p.share, p.mine)
		p.f.shares.Add(-1)
	}
}

// Bound sets the limits: of all requests, and of those of each share.
func (f *Counter) Bound(all, each int) {
	f.max.Store(int64(all))
	f.each.Store(int64(each))
}

// Len returns the number of requests in flight.
func (f *Counter) Len() int { return int(f.all.Load()) }

// Enter takes a slot for a request of a share. If a limit is reached, it returns the limit
// and its value.
func (f *Counter) Enter(share mcp.Share) (p Slot, limit *limits.Limit, most int64) {
	if most := f.max.Load(); f.all.Add(1) > most {
		f.all.Add(-1)
		return Slot{}, limits.Requests, most
	}
	mine, n := f.count(share)
	p = Slot{f, share, mine}
	if most := f.each.Load(); n > most {
		p.Leave()
		return Slot{}, limits.RequestsEach, most
	}
	return p, nil, 0
}

// EnterCounted is Enter for a request that another replica has counted for its share.
func (f *Counter) EnterCounted() (p Slot, limit *limits.Limit, most int64) {
	if most := f.max.Load(); f.all.Add(1) > most {
		f.all.Add(-1)
		return Slot{}, limits.Requests, most
	}
	return Slot{f: f}, nil, 0
}

// count increments the counter of a share, and returns the counter and its new value.
func (f *Counter) count(share mcp.Share) (*atomic.Int64, int64) {
	for {
		v, ok := f.by.Load(share)
		if !ok {
			if v, ok = f.by.LoadOrStore(share, new(atomic.Int64)); !ok {
				f.shares.Add(1)
			}
		}
		c := v.(*atomic.Int64)
		if n := c.Load(); n >= 0 && c.CompareAndSwap(n, n+1) {
			return c, n + 1
		}
	}
}
