package cache

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// joinTimeout bounds how long a request waits for another request's fetch before it asks
// the server itself, so that one slow request does not delay the others twice.
const joinTimeout = 5 * time.Second

// A cachingHandler serves results from the cache, and caches results of the next handler.
// After a change all subscribers of a list read it at the same time: the first request
// asks the server, and the others wait for its result.
//
// A result from the cache comes without progress and log messages.
type cachingHandler struct {
	cache   *Cache
	server  string
	methods map[string]bool // read-only
	next    mcp.Handler
}

// Handler returns a Handler that serves the server's results of methods from the cache,
// and all others by next. If nothing is to be cached, it returns next.
func (c *Cache) Handler(server string, methods []string, next mcp.Handler) mcp.Handler {
	if c == nil || len(methods) == 0 {
		return next
	}
	h := &cachingHandler{cache: c, server: server, methods: make(map[string]bool), next: next}
	for _, method := range methods {
		h.methods[method] = true
	}
	return h
}

// Serve implements [mcp.Handler].
func (h *cachingHandler) Serve(ctx context.Context, req *mcp.Request, caller mcp.Caller) (*mcp.Result, error) {
	if !h.methods[req.Method] {
		return h.next.Serve(ctx, req, caller)
	}
	k, ok := keyOf(req)
	if !ok {
		return h.next.Serve(ctx, req, caller)
	}
	res, f := h.find(ctx, k)
	h.cache.metrics.CacheLooked(h.server, req.Method, res != nil)
	if res != nil {
		return res, nil
	}
	answered := false
	defer func() { h.cache.finish(f, answered) }() // after a panic, too
	asked := &askedCaller{Caller: caller}
	res, err := h.next.Serve(ctx, req, asked)
	if err == nil && !asked.asked.Load() {
		h.cache.store(f, res)
	}
	answered = ctx.Err() == nil
	return res, err
}

// find returns a result from the cache, or a fetch that the caller has to carry out. Of
// requests for the same result one gets the fetch, and the others wait for it. If the
// client of the first leaves, or a change makes its result stale, the next one fetches; if
// the server refused, all of them do, since one after the other would take too long.
func (h *cachingHandler) find(ctx context.Context, k key) (*mcp.Result, *fetch) {
	res, f, own := h.cache.lookup(h.server, k, false)
	if res != nil || own {
		return res, f
	}
	timeout := time.NewTimer(joinTimeout)
	defer timeout.Stop()
	for {
		alone := true // if ctx has ended, sending the request fails
		select {
		case <-f.done:
			alone = f.alone
		case <-timeout.C:
		case <-ctx.Done():
		}
		if res, f, own = h.cache.lookup(h.server, k, alone); res != nil || own {
			return res, f
		}
	}
}

// An askedCaller records whether its client got input requests: then the result depends on
// the responses, and is not cached.
type askedCaller struct {
	mcp.Caller
	asked atomic.Bool
}

// RequestInput implements [mcp.Caller].
func (c *askedCaller) RequestInput(ctx context.Context, reqs []mcp.InputRequest) ([]mcp.InputResponse, error) {
	c.asked.Store(true)
	return c.Caller.RequestInput(ctx, reqs)
}
