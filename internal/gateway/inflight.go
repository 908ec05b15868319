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

// maxIdle is how many shares there have to be before the counters of those that have no
// request in flight are taken out: most have another soon.
const maxIdle = 1024

// inflight counts the HTTP requests that are being served, without a lock that all of
// them take. Safe for concurrent use.
type inflight struct {
	max, each int64 // read-only

	all    atomic.Int64
	by     sync.Map     // mcp.Share -> *atomic.Int64, below zero once it is taken out
	shares atomic.Int64 // how many by has
}

// A requestSlot is that of a request in flight.
type requestSlot struct {
	f     *inflight
	share mcp.Share
	mine  *atomic.Int64 // the share's counter
}

// leave counts the request out.
func (p requestSlot) leave() {
	p.f.all.Add(-1)
	if p.mine.Add(-1) == 0 && p.f.shares.Load() > maxIdle && p.mine.CompareAndSwap(0, -1) {
		p.f.by.CompareAndDelete(p.share, p.mine)
		p.f.shares.Add(-1)
	}
}

// enter counts a request of a share in, until it leaves its place. It returns the bound
// that is reached, and its value; nil if there is room.
func (f *inflight) enter(share mcp.Share) (p requestSlot, limit *limits.Limit, most int64) {
	if f.all.Add(1) > f.max {
		f.all.Add(-1)
		return requestSlot{}, limits.Requests, f.max
	}
	mine, n := f.count(share)
	p = requestSlot{f, share, mine}
	if n > f.each {
		p.leave()
		return requestSlot{}, limits.RequestsEach, f.each
	}
	return p, nil, 0
}

// count counts one up for a share, and returns its counter and what it says.
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

// refuseInFlight answers a request for which there is no room.
func (g *Gateway) refuseInFlight(w http.ResponseWriter, r *http.Request, limit *limits.Limit, most int64) {
	g.opts.Metrics.Limit("", limit.Key)
	g.opts.Logger.Warn("request refused: too many are in flight", "downstream", r.RemoteAddr, "limit", most)
	refuseBusy(w, wire.Errorf(spec.CodeInternal, "%d requests are in flight, the limit; try again in a moment, or %s", most, limit.Raise()))
}

// refuseBusy answers a request that may be served later. What the client has not sent
// of it is not read.
func refuseBusy(w http.ResponseWriter, e *wire.Error) {
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Connection", "close")
	downstream.WriteError(w, http.StatusServiceUnavailable, wire.ID{}, e)
}
