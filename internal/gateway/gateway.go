package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/access"
	"github.com/mcpbridge/mcpbridge/internal/auth"
	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/cache"
	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/expiry"
	"github.com/mcpbridge/mcpbridge/internal/hub"
	"github.com/mcpbridge/mcpbridge/internal/inflight"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/origin"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/replicas/placement"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trace"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// Defaults of Options, but for limits that package limits declares.
const (
	DefaultMemory      = 1 << 30
	DefaultBodyTimeout = 30 * time.Second
)

// retireTime bounds how long a server that is not served any more takes to end, once nothing
// uses it.
const retireTime = 10 * time.Second

// ServerOptions describe one server.
type ServerOptions struct {
	// Name is the endpoint's last path segment. Required.
	Name string
	// Open builds the back, which reports changes to c. Required.
	Open func(c mcp.Changes) (mcp.Back, error)
	// OpenPeer builds a back that watches the server at another replica. Nil means that each
	// replica watches by itself.
	OpenPeer func(upstream.Peer) (mcp.Back, error)
	// Isolation decides which requests may share upstream sessions. Empty means
	// IsolatePrincipal.
	Isolation Isolation
	// Command says that each upstream session is a process. With IsolateNothing all clients
	// then share one process, whatever their capabilities.
	Command bool
	// StartTimeout is how long a legacy client's initialize waits for a server that starts.
	// Zero means the front's default.
	StartTimeout time.Duration
	// HoldFor has all calls of a profile served by one of several replicas, since the server
	// has a state of its own: the first one that is asked, for this long after the last call.
	// Zero means that each replica serves what it is asked.
	HoldFor time.Duration
	// Gather and ParkedTTL are those of the front; zero means its defaults.
	Gather, ParkedTTL time.Duration
	// Keep names the methods whose public results the gateway caches, and serves to the
	// same profile for as long as their hints say. Only lists and resources/read can be
	// cached.
	Keep []string
	// LogLevel is the log level for legacy clients that set none; empty for no messages.
	LogLevel spec.LogLevel
	// Experimental forwards clients' experimental capabilities to the server. They are
	// then part of the profile.
	Experimental bool
	// HideExtensions are names of extensions and experimental capabilities that are
	// forwarded in neither direction. The back hides them; here they are not part of a
	// profile. If [spec.ExtensionTasks] is one of them, requests about tasks are refused.
	HideExtensions []string
	// ForwardClientInfo forwards the client's name and version to the server. They are then
	// part of the profile.
	ForwardClientInfo bool
	// Access says who may do what with the server. Its Server and Metrics need not be set.
	Access access.Options
	// Auth is Options.Auth for this server; nil for that.
	Auth auth.Authenticator
	// Saw is told of the credential of each request, before that is served. Nil means that
	// nobody wants to know.
	Saw func(*mcp.Identity)
	// OnlyFor is the one principal that may use the server, since its credential is that
	// principal's. Empty means all.
	OnlyFor mcp.Principal
	// PublicURL is the URL by which clients know the endpoint. Empty if it is not known:
	// the endpoint has no metadata then.
	PublicURL string
	// Kept says to [Gateway.Reload] that the server of this name goes on as it is. No other
	// field but Name counts then.
	Kept bool
	// Ended, if it is not nil, is called once a server is closed that was served.
	Ended func()
}

// Isolation decides which requests may share an upstream session.
type Isolation string

// The isolation modes.
const (
	IsolatePrincipal Isolation = "principal" // those of one principal
	IsolateRequest   Isolation = "request"   // none
	IsolateNothing   Isolation = "shared"    // all
)

// Options configure a Gateway.
type Options struct {
	Servers []ServerOptions

	// Instance begins the ids of sessions, events and requestStates: eight characters of
	// [rand.Text], new with each start. Empty means that of Peers, or a random one.
	Instance string
	// Peers are the other replicas, to which requests of their sessions and calls are
	// forwarded. Nil means that there are none.
	Peers *peer.Group

	// Memory bounds the memory for all clients of all servers, in bytes: messages and their
	// responses, calls, sessions, subscriptions, and cached results. It is divided among
	// shares. Zero means DefaultMemory.
	Memory int64
	// MaxBody bounds a request body in bytes. Zero means the default of limits.Body.
	MaxBody int64
	// MaxDepth bounds how deeply JSON may nest. Zero means the wire package's
	// default.
	MaxDepth int
	// Lengths bound parts of a client's message. Zero means their defaults.
	Lengths mcp.Lengths
	// MaxRequests bounds the HTTP requests in flight, MaxRequestsEach those of one
	// principal. Zero means the defaults of limits.Requests and limits.RequestsEach.
	MaxRequests, MaxRequestsEach int
	// MaxStreams bounds the open listen streams, MaxStreamsEach those of one share. Zero
	// means the defaults of limits.Streams and limits.StreamsEach.
	MaxStreams, MaxStreamsEach int
	// MaxTopics bounds the resources of one listen stream, or of one legacy session. Zero
	// means the front's default.
	MaxTopics int
	// MaxParked bounds the parked calls of one server, MaxParkedEach those of one share.
	// Zero means the front's defaults.
	MaxParked, MaxParkedEach int
	// MaxSessions bounds the legacy sessions with one server, MaxSessionsEach those of one
	// share. SessionIdle is how long an unused session lasts, and MaxStored bounds the
	// events that it stores for a client that reconnects, in bytes. Zero means the front's
	// defaults.
	MaxSessions, MaxSessionsEach int
	SessionIdle                  time.Duration
	MaxStored                    int
	// MaxSockets bounds the open WebSockets of clients, MaxSocketsEach those of one
	// principal. Zero means the defaults of limits.WebSockets and limits.WebSocketsEach.
	MaxSockets, MaxSocketsEach int
	// CacheEntries and CacheBytes bound the cached results of all servers. Zero means the
	// defaults of limits.CacheEntries and limits.Cache.
	CacheEntries, CacheBytes int
	// StateKeys are the secrets that encrypt requestStates. The first one encrypts; the
	// others decrypt only. Empty means a random one for the life of the Gateway.
	StateKeys []string
	// BodyTimeout bounds the time for receiving a request body, or a message over a
	// WebSocket. Zero means DefaultBodyTimeout.
	BodyTimeout time.Duration
	// Drain bounds the wait for the calls in flight when a connection ends: one of
	// [Gateway.ServeConn], a WebSocket or HTTP+SSE. Zero means DefaultDrain.
	Drain time.Duration
	// WriteTimeout and KeepAlive are those of the fronts; zero means theirs.
	WriteTimeout, KeepAlive time.Duration

	// MachineName is the machine's name, which is an allowed Host on listeners beyond
	// loopback. Empty means that clients use the address, or an allowed name.
	MachineName string
	// AllowedHosts are further allowed Host names, without port. Loopback names are always
	// allowed, and on listeners beyond loopback also IP addresses and MachineName.
	// AllowedOrigins are further allowed Origins; loopback ones are always allowed. Pages
	// of all of them may read the responses.
	AllowedHosts, AllowedOrigins []string

	// TrustedProxies are the networks of trusted proxies. Their X-Forwarded-For and
	// Forwarded headers give the client's address, by which limits distinguish anonymous
	// clients.
	TrustedProxies []netip.Prefix

	// Auth says who sent a request; requests of different principals share nothing but
	// what the options say is shared. It is asked for each request, of servers that have
	// none of their own. Nil means that all clients are anonymous: that is why a listener
	// beyond loopback must be allowed by name in the configuration.
	Auth auth.Authenticator

	// Secrets are removed from errors for clients; nil means none. The Logger's handler has
	// to remove them from the log.
	Secrets *redact.Redactor
	// DebugErrors sends clients errors as in the log: with addresses and paths of the
	// gateway's side, and what a server's process wrote.
	DebugErrors bool

	Logger    *slog.Logger     // nil discards
	Metrics   mcp.Metrics      // nil counts nothing
	Observers *trace.Observers // are told of requests; nil tells nobody
	// QuietRequests leaves requests that did not fail out of the log, since the access log
	// has them.
	QuietRequests bool
	// NameTools has Metrics told which tools are called.
	NameTools bool
}

// A Gateway serves the MCP endpoints of all servers.
type Gateway struct {
	opts     Options // of New: only its Logger, Metrics, Secrets and Observers outlast a Reload, see table
	table    atomic.Pointer[table]
	budget   *budget.Budget
	hub      *hub.Hub
	sealer   *requeststate.Sealer
	sockets  *sockets
	inflight inflight.Counter
	expiry   *expiry.Watch // of the credentials of what is open

	// Set by New, read-only after.
	instance string // prefix of the ids of sessions, events and requestStates
	replication
	lifetimes
	made atomic.Int64 // servers that were built, also by Reload

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
	peers     *peer.Group
	sharing   sharing
	leaving   leaving
	placement *placement.Table
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
	sealer, err := requeststate.NewSealerOf(opts.Instance, opts.StateKeys...)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	memory := budget.New(opts.Memory)
	results, err := newCache(opts, memory)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g := &Gateway{
		opts: opts, budget: memory, sealer: sealer, sockets: newSockets(opts),
		instance: opts.Instance, replication: replication{peers: opts.Peers}, expiry: expiry.New(), retiring: retirement{of: make(map[string]int)},
	}
	g.hub = hub.New(hub.Options{Cache: results, MaxStreams: opts.MaxStreams, MaxStreamsEach: opts.MaxStreamsEach, Logger: opts.Logger, Metrics: opts.Metrics, Until: g.expiry.Until})
	if g.leaving.group, err = newHandover(&opts); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
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
	if g.placement, err = newPlacement(&opts, g.sharing.sources); err != nil {
		return nil, err
	}
	t, _, err = g.newTable(opts)
	return t, err
}

// release ends what all servers have in common. Call it after all requests have ended.
func (g *Gateway) release() {
	if g.placement != nil {
		g.placement.Close()
	}
	g.sharing.close()
	g.cut()
	g.expiry.Close()
	g.leaving.close()
}

// fill sets the defaults.
func (opts *Options) fill() {
	if opts.Peers != nil {
		opts.Instance = opts.Peers.Self().Instance
	}
	opts.Instance = cmp.Or(opts.Instance, rand.Text()[:8])
	opts.Memory = cmp.Or(opts.Memory, DefaultMemory)
	opts.MaxBody = cmp.Or(opts.MaxBody, limits.Body.Default)
	opts.Lengths.Fill()
	opts.MaxRequests = cmp.Or(opts.MaxRequests, int(limits.Requests.Default))
	opts.MaxRequestsEach = cmp.Or(opts.MaxRequestsEach, int(limits.RequestsEach.Default))
	opts.MaxStreams = cmp.Or(opts.MaxStreams, int(limits.Streams.Default))
	opts.MaxStreamsEach = cmp.Or(opts.MaxStreamsEach, int(limits.StreamsEach.Default))
	opts.CacheEntries = cmp.Or(opts.CacheEntries, int(limits.CacheEntries.Default))
	opts.CacheBytes = cmp.Or(opts.CacheBytes, int(limits.Cache.Default))
	opts.BodyTimeout = cmp.Or(opts.BodyTimeout, DefaultBodyTimeout)
	opts.Drain = cmp.Or(opts.Drain, DefaultDrain)
	opts.MaxSockets = cmp.Or(opts.MaxSockets, int(limits.WebSockets.Default))
	opts.MaxSocketsEach = cmp.Or(opts.MaxSocketsEach, int(limits.WebSocketsEach.Default))
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Metrics == nil {
		opts.Metrics = mcp.NoMetrics{}
	}
}

// newCache returns a cache, for servers that have results to cache.
func newCache(o Options, memory *budget.Budget) (*cache.Cache, error) {
	return cache.New(cache.Options{Entries: o.CacheEntries, Bytes: o.CacheBytes, Memory: memory, Metrics: o.Metrics})
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
	t.bodies.bound(w, r)
	endChunked(w, r)
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
		g.serveAdmitted(w, r, s, (*server).serve)
		return
	}
	t.mux.ServeHTTP(w, r)
}

// serveAdmitted has a request to a server served whose sender may send it.
func (g *Gateway) serveAdmitted(w http.ResponseWriter, r *http.Request, s *server, serve serveFunc) {
	if !s.life.Enter() {
		g.dispatch(w, r, g.now()) // which has not this server
		return
	}
	defer s.life.Leave()
	sender, ok := g.admit(w, r, &s.guard)
	if !ok {
		return
	}
	place, limit, most := g.inflight.Enter(sender.Share)
	if limit != nil {
		g.refuseInFlight(w, r, limit, most)
		return
	}
	defer place.Leave()
	sender.Arrival = g.arrival(r)
	if g.peers != nil {
		release, done := g.forwarded(w, r, s, sender, false)
		defer release()
		if done {
			return
		}
	}
	serve(s, w, r, sender)
}

// EndStreams ends all listen streams gracefully and refuses new ones, begins to end
// WebSockets, and starts no more processes. It is the first step of a shutdown, because the
// HTTP server's Shutdown waits for open responses.
func (g *Gateway) EndStreams() {
	g.mu.Lock()
	g.ending = true
	t := g.now()
	g.mu.Unlock()
	g.Drain()
	g.sockets.stop()
	g.endAll()
	g.sharing.sources.Drain()
	for _, s := range t.servers {
		if d, ok := s.back.(*detect.Detector); ok {
			d.Drain()
		}
		s.legacy.EndStreams()
	}
	g.hub.Close()
}

// EndConnections refuses new WebSockets, and waits for the open ones, whose calls in flight
// may take [Options.Drain], and for listen streams, which EndStreams has ended. When ctx ends,
// it closes them and returns the cause. An HTTP server's Shutdown does not wait for
// WebSockets.
func (g *Gateway) EndConnections(ctx context.Context) error {
	g.EndStreams()
	servers := g.now().inOrder()
	errs := make([]error, len(servers), len(servers)+1)
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { errs[i] = s.streams.Wait(ctx) })
	}
	g.endLeaving(ctx)
	sockets := g.sockets.wait(ctx)
	wg.Wait()
	return cmp.Or(append(errs, sockets)...)
}

// Close ends all connections that outlive their requests, and then the servers. ctx bounds
// the wait for a graceful end. Call it after all requests have ended.
func (g *Gateway) Close(ctx context.Context) error {
	g.closing.once.Do(func() {
		cutErr := g.EndConnections(ctx)
		defer context.AfterFunc(ctx, g.cut)()
		servers := g.now().inOrder()
		errs := make([]error, len(servers))
		var wg sync.WaitGroup
		for i, s := range servers {
			wg.Go(func() { errs[i] = s.close(ctx) })
		}
		wg.Wait()
		g.retiring.Wait()
		g.release()
		g.closing.err = errors.Join(append(errs, cutErr)...)
	})
	return g.closing.err
}

// A Snapshot is the state of a gateway at one moment.
type Snapshot struct {
	Draining bool             `json:"draining"`
	Streams  int              `json:"streams"`  // open listen streams
	Members  int              `json:"members"`  // legacy sessions that can subscribe
	Sessions int              `json:"sessions"` // of legacy clients, over HTTP
	Sockets  int              `json:"sockets"`  // open WebSockets of clients
	Topics   int              `json:"topics"`   // distinct topics with subscribers
	Pairs    int              `json:"pairs"`    // (topic, stream) pairs
	Cache    cache.Snapshot   `json:"cache"`
	Servers  []ServerSnapshot `json:"servers"`
}

// A ServerSnapshot is the state of one server.
type ServerSnapshot struct {
	Name  string `json:"name"`
	State string `json:"state"` // "starting", "ready" or "down"
	Error string `json:"error,omitempty"`
}

// Snapshot returns a copy of the gateway's state.
func (g *Gateway) Snapshot() Snapshot {
	h := g.hub.Snapshot()
	snap := Snapshot{
		Draining: h.Closed, Streams: h.Streams, Members: h.Members, Topics: h.Topics, Pairs: h.Pairs, Cache: h.Cache,
		Sockets: g.sockets.len(),
	}
	for _, s := range g.now().inOrder() {
		snap.Sessions += s.legacy.Sessions()
		ss := ServerSnapshot{Name: s.name, State: "ready"}
		switch err := s.back.Err(); {
		case errors.Is(err, mcp.ErrStarting):
			ss.State = "starting"
		case err != nil:
			ss.State, ss.Error = "down", g.opts.Secrets.String(err.Error())
		}
		snap.Servers = append(snap.Servers, ss)
	}
	return snap
}

// Names returns the names of the servers in the order they were given.
func (g *Gateway) Names() []string { return slices.Clone(g.now().order) }
