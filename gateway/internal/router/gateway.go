package router

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/admission"
	"github.com/mcpbridge/mcpbridge/gateway/internal/cache"
	"github.com/mcpbridge/mcpbridge/gateway/internal/forward"
	"github.com/mcpbridge/mcpbridge/gateway/internal/hub"
	"github.com/mcpbridge/mcpbridge/gateway/internal/sockets"
	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/origin"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// retireTime bounds how long a server that is not served any more takes to end, once nothing
// uses it.
const retireTime = 10 * time.Second

// A Gateway serves the MCP endpoints of all servers.
type Gateway struct {
	opts     Options // of New: only its Logger, Metrics, Losses, Secrets and Observers outlast a Reload, see table
	table    atomic.Pointer[table]
	budget   *budget.Budget
	hub      *hub.Hub
	sealer   *requeststate.Sealer
	sockets  *sockets.Set // the WebSockets of all servers' clients
	inflight admission.Counter
	expiry   *admission.Expirer // of the credentials of what is open

	// Set by New, read-only after.
	instance string // prefix of the ids of sessions, events and requestStates
	replication
	lifetimes
	made atomic.Int64 // servers that were built, also by Reload

	yielded, full transport.WarnLimiter // of WebSockets, when too many are open
	limits        *downstream.LimitLog  // of what is no server's

	retiring retirement

	// mu guards the next two, retiring.of, and that no table follows the last one.
	mu     sync.Mutex
	begun  bool // Start was called
	ending bool // EndStreams was called

	closing struct { // by the first Close
		once sync.Once
		err  error
	}
}

// A replication is what a Gateway has together with other replicas. It is zero for one
// replica.
type replication struct {
	peers   *peer.Group
	sharing sharing
	forward *forward.Group
}

// lifetimes bound what a Gateway has begun.
type lifetimes struct {
	streams context.Context // ends with EndStreams
	endAll  context.CancelFunc
	live    context.Context // ends when Close waits no longer
	cut     context.CancelFunc
}

// New builds a Gateway and all its servers. It starts nothing.
func New(opts Options) (*Gateway, error) {
	opts.fill()
	sealer, err := opts.sealer()
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	memory := budget.New(opts.memory())
	results, err := newCache(opts, memory)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g := &Gateway{
		opts: opts, budget: memory, sealer: sealer, sockets: sockets.New(),
		instance: opts.Instance, replication: replication{peers: opts.Peers}, expiry: admission.NewExpirer(), retiring: retirement{of: make(map[string]int)},
		limits: downstream.NewLimitLog("", opts.Metrics, opts.Logger),
	}
	g.hub = hub.New(hub.Options{Cache: results, Logger: opts.Logger, Metrics: opts.Metrics, Until: g.expiry.Until})
	g.live, g.cut = context.WithCancel(context.Background())
	g.streams, g.endAll = context.WithCancel(g.live)
	g.bound(&opts)
	g.share(opts.Peers)
	first, err := g.first(opts)
	if err != nil {
		g.release()
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g.table.Store(first)
	return g, nil
}

// first returns the first table of a Gateway.
func (g *Gateway) first(opts Options) (t *table, err error) {
	if g.forward, err = g.newForward(&opts); err != nil {
		return nil, err
	}
	t, _, err = g.newTable(opts)
	return t, err
}

// release ends what all servers have in common. Call it after all requests have ended.
func (g *Gateway) release() {
	if g.forward != nil {
		g.forward.Close()
	}
	g.sharing.close()
	g.cut()
	g.expiry.Close()
}

// newCache returns a cache, for servers that have results to cache.
func newCache(o Options, memory *budget.Budget) (*cache.Cache, error) {
	return cache.New(cache.Options{Entries: o.Limits.Int(limits.CacheEntries), Bytes: o.Limits.Int(limits.Cache), Memory: memory, Metrics: o.Metrics})
}

// Start connects to all servers in the background.
func (g *Gateway) Start() {
	g.mu.Lock()
	g.begun = true
	t := g.now()
	g.mu.Unlock()
	start(t.inOrder())
}

// ServeHTTP serves the endpoints /mcp/NAME, and /sse/NAME for HTTP+SSE; if there is only one
// server, also without NAME. WebSockets and listen streams outlive their requests: see
// [Gateway.EndConnections].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := g.now()
	t.bodies.Bound(w, r)
	endChunked(w, r)
	rest := t.bodies.Rest(r)
	g.serve(w, r, t)
	rest.Finish(w)
}

func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, t *table) {
	if t.isPage(r) {
		g.servePage(w, r, t)
		return
	}
	if refused := t.origins.Refuse(w, r); refused {
		return
	}
	if answered := origin.Share(w, r); answered {
		return
	}
	g.dispatch(w, r, t)
}

// dispatch passes a request to the server that a table has for it.
func (g *Gateway) dispatch(w http.ResponseWriter, r *http.Request, t *table) {
	if s := t.serverAt(r.URL); s != nil {
		g.serveAdmitted(w, r, s, forward.Streamable)
		return
	}
	t.mux.ServeHTTP(w, r)
}

// serveAdmitted has a request to a server served whose sender may send it.
func (g *Gateway) serveAdmitted(w http.ResponseWriter, r *http.Request, s *server, at forward.Endpoint) {
	if !s.life.Enter() {
		g.dispatch(w, r, g.now()) // which has not this server
		return
	}
	defer s.life.Leave()
	g.serveEntered(w, r, s, at)
}

// serveEntered has a request to a server served that was entered.
func (g *Gateway) serveEntered(w http.ResponseWriter, r *http.Request, s *server, at forward.Endpoint) {
	sender, ok := s.guard.Authenticate(w, r)
	if !ok {
		return
	}
	place, limit, most := g.inflight.Enter(sender.Share)
	if limit != nil {
		g.refuseInFlight(w, r, limit, most)
		return
	}
	if isVisit(r, at) {
		defer place.Leave()
		page := newVisitPage(s, r, at)
		page.Write(w)
		return
	}
	if downstream.Stays(r) {
		var leave func()
		r, leave = downstream.Placed(r, place.Leave)
		defer leave()
	} else {
		defer place.Leave()
	}
	sender.Arrival = arrivalOf(r, g)
	s.answer(request{s: s, w: w, r: r, at: at, sender: sender}, false)
}
