package gateway

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxIdle is the number of shares above which the counters of shares without requests in
// flight are removed. Most such shares soon send another request.
const maxIdle = 1024

// inflight counts the HTTP requests that are being served, without a global lock. Safe for
// concurrent use.
type inflight struct {
	max, each atomic.Int64 // the limits

	all    atomic.Int64
	by     sync.Map     // mcp.Share -> *atomic.Int64, below zero once it is removed
	shares atomic.Int64 // the number of counters in by
}

// A requestSlot counts one request in flight.
type requestSlot struct {
	f     *inflight
	share mcp.Share
	mine  *atomic.Int64 // the share's counter
}

// leave frees the slot.
func (p requestSlot) leave() {
	p.f.all.Add(-1)
	if p.mine.Add(-1) == 0 && p.f.shares.Load() > maxIdle && p.mine.CompareAndSwap(0, -1) {
		p.f.by.CompareAndDelete(p.share, p.mine)
		p.f.shares.Add(-1)
	}
}

// enter takes a slot for a request of a share. If a limit is reached, it returns the limit
// and its value.
func (f *inflight) enter(share mcp.Share) (p requestSlot, limit *limits.Limit, most int64) {
	if most := f.max.Load(); f.all.Add(1) > most {
		f.all.Add(-1)
		return requestSlot{}, limits.Requests, most
	}
	mine, n := f.count(share)
	p = requestSlot{f, share, mine}
	if most := f.each.Load(); n > most {
		p.leave()
		return requestSlot{}, limits.RequestsEach, most
	}
	return p, nil, 0
}

// count increments the counter of a share, and returns the counter and its new value.
func (f *inflight) count(share mcp.Share) (*atomic.Int64, int64) {
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

// refuseInFlight answers a request that exceeds a limit on requests in flight.
func (g *Gateway) refuseInFlight(w http.ResponseWriter, r *http.Request, limit *limits.Limit, most int64) {
	g.opts.Metrics.Limit("", limit.Key)
	g.opts.Logger.Warn("request refused: too many are in flight", "downstream", r.RemoteAddr, "limit", most)
	refuseBusy(w, wire.Errorf(spec.CodeInternal, "%d requests are in flight, the limit; try again in a moment, or %s", most, limit.Raise()))
}

// refuseBusy answers a request that may succeed later. It does not read the rest of the
// body.
func refuseBusy(w http.ResponseWriter, e *wire.Error) {
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Connection", "close")
	downstream.WriteError(w, http.StatusServiceUnavailable, wire.ID{}, e)
}
