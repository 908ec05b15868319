package gateway

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern"
)

// everybody is the share of anonymous clients whose address is not known.
var everybody = exchange.Share{Principal: exchange.Anonymous}

// inflight counts the HTTP requests that are being served, without a lock that all of
// them take. Safe for concurrent use.
type inflight struct {
	max, each int64 // read-only

	all atomic.Int64
	by  sync.Map // exchange.Share -> *atomic.Int64, below zero once it is taken out
}

// enter counts a request of a share in, until leave. It returns the bound that is
// reached, below limits, and its value; none if there is room.
func (f *inflight) enter(share exchange.Share) (leave func(), limit string, most int64) {
	if f.all.Add(1) > f.max {
		f.all.Add(-1)
		return nil, "requests", f.max
	}
	mine, n := f.count(share)
	leave = func() {
		f.all.Add(-1)
		if mine.Add(-1) == 0 && share != everybody && mine.CompareAndSwap(0, -1) {
			f.by.CompareAndDelete(share, mine)
		}
	}
	if n > f.each {
		leave()
		return nil, "requests_each", f.each
	}
	return leave, "", 0
}

// count counts one up for a share, and returns its counter and what it says. That of everybody
// stays for good, others until they are zero.
func (f *inflight) count(share exchange.Share) (*atomic.Int64, int64) {
	for {
		v, ok := f.by.Load(share)
		if !ok {
			v, _ = f.by.LoadOrStore(share, new(atomic.Int64))
		}
		c := v.(*atomic.Int64)
		if n := c.Load(); n >= 0 && c.CompareAndSwap(n, n+1) {
			return c, n + 1
		}
	}
}

// refuseInFlight answers a request for which there is no room.
func (g *Gateway) refuseInFlight(w http.ResponseWriter, r *http.Request, limit string, most int64) {
	g.opts.Metrics.Limit("", limit)
	g.opts.Logger.Warn("request refused: too many are in flight", "downstream", r.RemoteAddr, "limit", most)
	refuseBusy(w, wire.Errorf(spec.CodeInternal, "%d requests are in flight, the limit; try again in a moment, or raise limits.%s", most, limit))
}

// refuseBusy answers a request that may be served later. What the client has not sent
// of it is not read.
func refuseBusy(w http.ResponseWriter, e *wire.Error) {
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Connection", "close")
	modern.WriteError(w, http.StatusServiceUnavailable, wire.ID{}, e)
}
