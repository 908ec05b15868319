package cache

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// joinTimeout bounds how long a request waits for the fetch of another before it asks the
// server itself: a server that is slow with one request must not slow down the others
// twice.
const joinTimeout = 5 * time.Second

// A cachingHandler serves what the cache has, and keeps what the next handler returns. A
// change makes every follower of a list ask for it at once: the first asks the server,
// the others wait for its result.
//
// A result from the cache comes without progress and log messages: nothing was done.
type cachingHandler struct {
	cache   *Cache
	server  string
	methods map[string]bool // read-only
	next    mcp.Handler
}

// Handler returns a Handler that answers requests for the server's results of methods
// from the cache, and all others by next. It returns next itself if nothing is to be kept.
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
// those who want the same result one gets the fetch at once, and the others wait for it.
// If the client of the first leaves, or a change overtakes its result, the next one
// fetches; if the server refused, each of them does, since one after the other would take
// too long.
func (h *cachingHandler) find(ctx context.Context, k key) (*mcp.Result, *fetch) {
	res, f, own := h.cache.lookup(h.server, k, false)
	if res != nil || own {
		return res, f
	}
	timeout := time.NewTimer(joinTimeout)
	defer timeout.Stop()
	for {
		alone := true // if ctx is done, the request fails where it is sent
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

// An askedCaller remembers whether its client was asked for input: then the result depends
// on the answer, and is for nobody else.
type askedCaller struct {
	mcp.Caller
	asked atomic.Bool
}

// RequestInput implements [mcp.Caller].
func (c *askedCaller) RequestInput(ctx context.Context, reqs []mcp.InputRequest) ([]mcp.InputResponse, error) {
	c.asked.Store(true)
	return c.Caller.RequestInput(ctx, reqs)
}
