package main

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A gate stands before the MCP handler and can end its listen streams without
// their results, and keep new ones out; calls pass.
type gate struct {
	next http.Handler

	// mu guards the fields below.
	mu    sync.Mutex
	open  map[*response]context.CancelFunc
	until time.Time // a listen is answered with 503 before
}

// newGate serves b's server: to each request a session of its own, which ends with
// its connection.
func newGate(b *board) *gate {
	server := func(*http.Request) *mcp.Server { return b.server }
	return &gate{
		next: refuseLegacy(mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})),
		open: make(map[*response]context.CancelFunc),
	}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Mcp-Method") != "subscriptions/listen" {
		g.next.ServeHTTP(w, r)
		return
	}
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	res := &response{ResponseWriter: w}
	if !g.enter(res, stop) {
		http.Error(w, "no listen streams for a while", http.StatusServiceUnavailable)
		return
	}
	g.next.ServeHTTP(res, r.WithContext(ctx))
	g.leave(res)
	if res.cut.Load() {
		panic(http.ErrAbortHandler) // net/http closes the connection without a word
	}
}

func (g *gate) enter(res *response, stop context.CancelFunc) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Now().Before(g.until) {
		return false
	}
	g.open[res] = stop
	return true
}

func (g *gate) leave(res *response) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, res)
}

// hold keeps new listen streams out for so long.
func (g *gate) hold(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = time.Now().Add(d)
}

// cut ends the responses of all listen streams in the middle.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for res, stop := range g.open {
		res.cut.Store(true)
		stop()
	}
}

// A response takes nothing more once it was cut: the SDK would still write the
// listen's result.
type response struct {
	http.ResponseWriter
	cut atomic.Bool
}

func (r *response) Write(b []byte) (int, error) {
	if r.cut.Load() {
		return 0, http.ErrAbortHandler
	}
	return r.ResponseWriter.Write(b)
}

// Flush is what the SDK looks for in a writer of streams.
func (r *response) Flush() {
	if !r.cut.Load() {
		_ = http.NewResponseController(r.ResponseWriter).Flush() // the next write fails if this did
	}
}
