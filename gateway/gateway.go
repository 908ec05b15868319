package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/router"
	"github.com/mcpbridge/mcpbridge/internal/httpserver"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/observation/metrics"
	"github.com/mcpbridge/mcpbridge/internal/release"
	"github.com/mcpbridge/mcpbridge/internal/replicas/node"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/userlogin"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// A Gateway serves the endpoints of its servers. It is an [http.Handler]. Its methods are
// safe for concurrent use.
//
// A program that ends calls EndStreams, then Shutdown of its HTTP server, and then
// Shutdown of the Gateway.
type Gateway struct {
	inner   *router.Gateway
	metrics *metrics.Metrics
	losses  *upstream.Losses
	sealer  *requeststate.Sealer
	lists   *listDefinitions
	stdio   transport.StdioOptions // without files

	hurry      chan struct{} // closed by hasten
	hasten     func()        // has commands end soon: the only client has gone
	closeGrace time.Duration

	node    *node.Node      // nil for one replica
	place   userlogin.Place // where logins of principals are
	turn    chan struct{}   // capacity 1, full while one of Start, Reload and Shutdown uses the next
	current *current
	logging loggingIn
	begun   bool // by Start
	ended   bool // by Shutdown
}

// New returns a Gateway. It connects to no server before [Gateway.Start], or the first
// request.
func New(o Options) (*Gateway, error) {
	counts := metrics.New(release.Version())
	if err := o.deriveStateKeys(); err != nil {
		return nil, err
	}
	n, err := newNode(&o, counts)
	if err != nil {
		return nil, err
	}
	g, err := newGateway(&o, counts, n)
	if err != nil && n != nil {
		err = errors.Join(err, n.Close(context.Background()))
	}
	return g, err
}

func newGateway(o *Options, counts *metrics.Metrics, n *node.Node) (*Gateway, error) {
	b := newBuild(o, counts)
	b.node, b.hurry, b.losses, b.place = n, make(chan struct{}), upstream.NewLosses(), placeOf(o, n)
	var err error
	if b.sealer, err = requeststate.NewSealerOf(b.instance(), o.StateKeys...); err != nil {
		return nil, fmt.Errorf("building the gateway: %w", err)
	}
	if err := b.addAll(); err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.common.identity = b.commonIdentity()
	if err := errors.Join(b.addCommon(), b.addGroups(nil), b.addAccess()); err != nil {
		return nil, errors.Join(err, b.close())
	}
	counts.NameTools(b.number(limits.MetricTools), o.Logger)
	opts := b.options(nil)
	if n != nil {
		opts.Handovers = counts.Replicas()
	}
	inner, err := router.New(opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("building the gateway: %w", err), b.close())
	}
	g := &Gateway{inner: inner, place: b.place, metrics: counts, node: n, turn: make(chan struct{}, 1), hurry: b.hurry, losses: b.losses, sealer: b.sealer, lists: b.lists}
	g.hasten = sync.OnceFunc(func() { close(g.hurry) })
	g.closeGrace = cmp.Or(o.CloseGrace, transport.DefaultCloseGrace)
	g.stand(b)
	g.stdio = transport.StdioOptions{MaxMessage: b.number(limits.Body), WriteTimeout: o.WriteTimeout}
	counts.WatchIndex(func() (topics, pairs int) {
		s := inner.Snapshot()
		return s.Topics, s.Pairs
	})
	return g, nil
}

// instance returns what the ids of this process begin with.
func (b *build) instance() string {
	if g := b.group(); g != nil {
		return g.Self().Instance
	}
	return rand.Text()[:8]
}

// Start connects to all servers in the background, so that their state is known before the
// first request.
func (g *Gateway) Start() {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	g.begun = true
	g.inner.Start()
	g.current.common.start()
	for _, p := range allParts(g.current.parts, g.current.groups) {
		p.start()
	}
}

// ServeHTTP serves /mcp/NAME and, for clients that have only HTTP+SSE, /sse/NAME and
// /message/NAME. NAME may be left out for [Options.Default].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.inner.ServeHTTP(w, r) }

// ServeStdio serves one client over files, as a rule [os.Stdin] and [os.Stdout], one
// message per line; it closes them. server is a server's name, and empty for the only one.
//
// It returns nil when the client has nothing more to send, or when ctx ends, after
// the calls in flight were given [Options.Drain]. Listen streams end then, those of
// other clients too. The client may soon kill this process: from [Options.CloseGrace] after
// the end of the input, or from the end of ctx on, commands that are being closed get
// SIGTERM, and SIGKILL three quarters of CloseGrace later.
func (g *Gateway) ServeStdio(ctx context.Context, in, out *os.File, server string) error {
	if g.audit().IsStdout() && out == os.Stdout {
		return errors.New("mcpbridge: the audit log can't be on standard output, which the client reads; give it a file")
	}
	o := g.stdio
	o.In, o.Out = in, out
	conn, err := transport.OpenStdio(o)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, g.EndStreams)()
	context.AfterFunc(ctx, g.hasten) // also once the client has nothing more to send
	return g.inner.ServeConn(ctx, &onlyConn{conn, g.inputEnded}, server)
}

// inputEnded is called when the only client has nothing more to send.
func (g *Gateway) inputEnded() {
	g.EndStreams()
	time.AfterFunc(g.closeGrace, g.hasten)
}

// An onlyConn is the connection to the only client.
type onlyConn struct {
	*transport.Stdio
	ended func() // called when the client has nothing more to send
}

// Read implements [transport.Conn].
func (c *onlyConn) Read() ([]byte, error) {
	msg, err := c.Stdio.Read()
	if tooLong := (*transport.TooLongError)(nil); err != nil && !errors.As(err, &tooLong) {
		c.ended()
	}
	return msg, err
}

// EndStreams ends all listen streams with their result, and refuses new ones. It is the
// first step of shutting down: an HTTP server waits for open responses.
func (g *Gateway) EndStreams() { g.inner.EndStreams() }

// EndConnections waits for the WebSockets and listen streams that outlive their requests,
// and of which an HTTP server knows nothing. When ctx ends they are cut off, and
// EndConnections returns its cause.
//
// With Replicas it also waits for what others have forwarded, and tells them that this one
// ends.
func (g *Gateway) EndConnections(ctx context.Context) error {
	err := g.inner.EndConnections(ctx)
	if g.node != nil {
		err = errors.Join(err, g.node.Leave(ctx))
	}
	return err
}

// Shutdown ends everything: streams, connections, sessions with servers, and their
// commands. ctx bounds how long they have to end in order. Requests over HTTP must have
// ended.
func (g *Gateway) Shutdown(ctx context.Context) error {
	g.logging.close()
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	err := g.inner.Close(ctx)
	if g.node != nil {
		err = errors.Join(err, g.node.Close(ctx))
	}
	if !g.ended {
		g.ended = true
		g.current.common.leave()
	}
	return errors.Join(err, g.current.common.err)
}

// audit returns the audit log; nil if there is none.
func (g *Gateway) audit() *audit.Log {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	return g.current.common.audit
}

// MetricsHandler serves counters of the gateway, and of the Go runtime, in the format of
// Prometheus.
func (g *Gateway) MetricsHandler() http.Handler { return g.metrics.Handler() }

// Listen listens on a TCP address, as [net.Listen] does, for an HTTP server of a Gateway.
// Its connections have small send buffers, so that a client that does not read is noticed
// soon, and so is one that is gone, within writeTimeout. Zero means 10 s.
func Listen(ctx context.Context, address string, writeTimeout time.Duration) (net.Listener, error) {
	return httpserver.Listen(ctx, address, writeTimeout)
}

// A Snapshot says how a Gateway is doing.
type Snapshot struct {
	Draining bool // EndStreams was called
	Streams  int  // open listen streams
	Sessions int  // sessions of legacy clients over HTTP
	Sockets  int  // open WebSockets of clients
	Topics   int  // resources and lists that somebody follows
	Servers  []ServerSnapshot
	Replicas *ReplicaSnapshot // nil for one replica
}

// A ServerSnapshot says how one server is doing.
type ServerSnapshot struct {
	Name  string
	State State
	Error string // why it is down
}

// A State is that of a server.
type State string

// The states of a server.
const (
	StateStarting State = "starting" // it was not reached yet
	StateReady    State = "ready"
	StateDown     State = "down" // it can't be reached, and is tried again
	StateIdle     State = "idle" // a command that no client of this one of several Replicas has asked
)

// Snapshot returns how the gateway is doing.
func (g *Gateway) Snapshot() Snapshot {
	from := g.inner.Snapshot()
	s := Snapshot{Draining: from.Draining, Streams: from.Streams, Sessions: from.Sessions, Sockets: from.Sockets, Topics: from.Topics}
	s.Replicas = g.replicas()
	for _, server := range from.Servers {
		s.Servers = append(s.Servers, ServerSnapshot{Name: server.Name, State: State(server.State), Error: server.Error})
	}
	return s
}
