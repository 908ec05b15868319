package gateway

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// joinFor is how long a request waits for another's result before it asks the
// server itself: a server that is slow with one request must not make others
// wait for two.
const joinFor = 5 * time.Second

// A keeper is the Handler that stands before a back whose public results may be
// kept. A change makes every follower of a list ask for it at once; the first of
// them asks the server, the others wait for its result.
//
// A result that is served from the cache brings no progress and no log messages:
// there was no work to tell of.
type keeper struct {
	cache   *cache
	server  string
	methods map[string]bool // read-only
	next    mcp.Handler
	metrics Metrics
}

// newKeeper returns next itself if nothing is to be kept.
func newKeeper(g *Gateway, so ServerOptions, next mcp.Handler) mcp.Handler {
	if g.hub.cache == nil || len(so.Keep) == 0 {
		return next
	}
	k := &keeper{cache: g.hub.cache, server: so.Name, methods: make(map[string]bool), next: next, metrics: g.opts.Metrics}
	for _, method := range so.Keep {
		k.methods[method] = true
	}
	return k
}

// Serve implements [mcp.Handler].
func (k *keeper) Serve(ctx context.Context, req *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
	if !k.methods[req.Method] {
		return k.next.Serve(ctx, req, x)
	}
	key, ok := keyOf(req)
	if !ok {
		return k.next.Serve(ctx, req, x)
	}
	res, l := k.find(ctx, key)
	k.metrics.CacheLooked(k.server, req.Method, res != nil)
	if res != nil {
		return res, nil
	}
	answered := false
	defer func() { k.cache.leave(l, answered) }() // a panic's too
	asks := &asking{Caller: x}
	res, err := k.next.Serve(ctx, req, asks)
	if err == nil && !asks.asked.Load() {
		k.cache.keep(l, res)
	}
	answered = ctx.Err() == nil
	return res, err
}

// find returns a result from the cache, or a load for the caller to carry out.
// Of those who want the same result one is given the load at once; the others
// see what came of it. If its client left or a change overtook it, the next of
// them tries; if the server refused, each does: one by one would take for ever.
func (k *keeper) find(ctx context.Context, key cacheKey) (*mcp.Result, *load) {
	res, l, lead := k.cache.look(k.server, key, false)
	if res != nil || lead {
		return res, l
	}
	patience := time.NewTimer(joinFor)
	defer patience.Stop()
	for {
		alone := true // and with ctx done it fails where it is sent
		select {
		case <-l.done:
			alone = l.alone
		case <-patience.C:
		case <-ctx.Done():
		}
		if res, l, lead = k.cache.look(k.server, key, alone); res != nil || lead {
			return res, l
		}
	}
}

// An asking is a Caller that remembers whether its client was asked: the
// result depends on the answer then, and is not for anybody else.
type asking struct {
	mcp.Caller
	asked atomic.Bool
}

func (a *asking) RequestInput(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
	a.asked.Store(true)
	return a.Caller.RequestInput(ctx, qs)
}
