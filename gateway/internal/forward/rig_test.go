package forward

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/admission"
	"github.com/mcpbridge/mcpbridge/gateway/internal/sockets"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/handover"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

const (
	serverName = "docs"
	replicaKey = "a key of all replicas"
	alice      = mcp.Principal("alice")

	// The headers of what a replica of these tests answers by itself.
	servedBy  = "Test-Served-By"
	servedVia = "Test-Served-Via" // who has forwarded it
	servedFor = "Test-Served-For" // whose it is
)

// A replica is a Group with one server, which answers what is not answered elsewhere with what
// it has read. Other replicas reach it on loopback.
type replica struct {
	t        *testing.T
	instance string
	engine   *replicastest.Engine
	peers    *peer.Group
	group    *Group
	server   *Server
	front    *legacyfront.Front
	sockets  *sockets.Set
	life     *admission.Lifetime
	streams  downstream.Streams
	logs     bridgetest.Log
	limits   bridgetest.Counts // of Metrics
	listener *httptest.Server  // for the other replicas; nil if there is none
	instead  atomic.Pointer[http.HandlerFunc]
	beside   atomic.Pointer[func(*http.Request)]

	era         atomic.Uint32 // of the server behind
	starting    atomic.Bool
	former      atomic.Bool // it does not say what it holds
	ownSessions atomic.Bool
	running     sync.WaitGroup // WebSockets
}

// An option changes what a replica is made with.
type option func(*replicas.Replica, *ServerOptions)

// stateful has all calls of a principal served by one replica.
func stateful(_ *replicas.Replica, o *ServerOptions) { o.HoldFor = time.Minute }

// ofRevision is a replica of another version.
func ofRevision(n int) option {
	return func(r *replicas.Replica, _ *ServerOptions) { r.Revision = n }
}

// newReplicas returns replicas that know each other, named A, B and so on.
func newReplicas(t *testing.T, n int, options ...option) (*replicastest.Broker, []*replica) {
	t.Helper()
	broker := replicastest.New()
	var all []*replica
	for i := range n {
		all = append(all, newReplica(t, broker, strings.Repeat(string(rune('A'+i)), 8), true, options...))
	}
	know(t, all)
	return broker, all
}

// know waits until replicas know each other, as they are.
func know(t *testing.T, all []*replica) {
	t.Helper()
	for _, r := range all {
		for _, other := range all {
			bridgetest.Eventually(t, "all members", func() bool {
				m, lives := r.peers.View().Member(other.instance)
				return lives && m == other.peers.Self()
			})
		}
	}
}

func newReplica(t *testing.T, broker *replicastest.Broker, instance string, listens bool, options ...option) *replica {
	t.Helper()
	r := &replica{t: t, instance: instance, sockets: sockets.New(), life: admission.NewLifetime()}
	r.sockets.Bound(8, 8)
	r.era.Store(uint32(spec.Modern))
	self := replicas.Replica{Instance: instance, Addr: "127.0.0.1:1", Version: "test", Revision: replicas.Revision}
	if listens {
		r.listener = httptest.NewUnstartedServer(http.HandlerFunc(r.servePeers))
		self.Addr = r.listener.Listener.Addr().String()
	}
	o := ServerOptions{
		Name: serverName, Back: &standIn{r: r}, Life: r.life, Streams: &r.streams,
		ClaimFor:    func(p mcp.Principal) string { return "claim of " + string(p) },
		OwnSessions: r.ownSessions.Load,
		Parse:       func(text []byte) (wire.Message, error) { return wire.Parse(text, wire.Options{}) },
		RefuseBody: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusRequestTimeout)
		},
	}
	for _, change := range options {
		change(&self, &o)
	}
	r.open(broker, self, o)
	return r
}

// open makes the parts of a replica.
func (r *replica) open(broker *replicastest.Broker, self replicas.Replica, o ServerOptions) {
	t := r.t
	t.Helper()
	r.engine = broker.Unjoined(t)
	r.engine.Update(self)
	var err error
	if r.peers, err = peer.New(peer.Options{Engine: r.engine, Keys: []string{replicaKey}, Logger: r.logs.Logger()}); err != nil {
		t.Fatal(err)
	}
	r.engine.Meet(r.peers)
	if err := r.engine.Member.Join(context.Background(), self); err != nil {
		t.Fatal(err)
	}
	ends, end := context.WithCancel(context.Background())
	r.group, err = New(Options{
		Peers: r.peers, Claims: r.engine, Sockets: r.sockets, Streams: ends, Logger: r.logs.Logger(), Metrics: limitCounts{counts: &r.limits},
		Timeouts: func() (write, keepAlive time.Duration) { return 0, 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	behind := &standIn{r: r}
	r.front, err = legacyfront.New(legacyfront.Options{
		Name: serverName, Instance: self.Instance, Handler: behind, Describer: behind, Subscriber: behind, Streams: &r.streams,
		Admit: func(*mcp.Request) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Front = r.front
	r.server = r.group.Open(o)
	if r.listener != nil {
		r.listener.Start()
	}
	t.Cleanup(func() { r.close(end) })
}

// close ends a replica, without an orderly end.
func (r *replica) close(endStreams context.CancelFunc) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	endStreams()
	r.sockets.Stop()
	_ = r.sockets.Wait(over)
	r.running.Wait()
	_ = r.streams.Wait(over)
	if r.group.drain.begun.Load() {
		r.group.AwaitDrain(over)
	}
	r.group.Close()
	r.kill()
	_ = r.front.Close(over)
	r.engine.SetFrozen(false)
	if r.listener != nil {
		r.listener.Close()
	}
	_ = r.engine.Close(over) // it asks the others
	r.peers.Close()
}

// kill ends the listener for the other replicas, and the heartbeats, as the death of a process
// does.
func (r *replica) kill() {
	r.engine.SetFrozen(true)
	if r.listener != nil { // which is not waited for: what it serves may wait for the engine, until close
		_ = r.listener.Listener.Close()
		r.listener.CloseClientConnections()
	}
}

// servePeers serves what other replicas send.
func (r *replica) servePeers(w http.ResponseWriter, req *http.Request) {
	e, err := r.peers.Open(req)
	instead := r.instead.Load()
	if beside := r.beside.Load(); beside != nil {
		(*beside)(req)
	}
	switch path := req.URL.Path; {
	case err != nil:
		peer.Refuse(w, err)
	case path == peer.BeatPath:
		r.peers.ServeBeat(w, req, e)
	case path == peer.HoldsPath && r.former.Load(): // as a version does that does not know the question
		http.NotFound(w, req)
	case path == peer.HoldsPath:
		r.peers.ServeHolds(w, req, e)
	case path == peer.HelloPath:
		r.peers.ServeHello(w, req, e)
	case instead != nil:
		(*instead)(w, req)
	case path == handover.Path+serverName:
		r.group.ServeHandover(w, req, e.From, r.server)
	case path == PartPath+serverName:
		r.group.ServePart(w, req, r.server)
	case !strings.HasSuffix(path, "/"+serverName):
		peer.Unserve(w)
	default:
		sender := e.Sender()
		sender.Via = e.From
		r.serve(w, req, endpointOf(req), sender, e.Moved)
	}
}

// serveInstead has a replica serve others by h, but for hellos.
func (r *replica) serveInstead(h http.HandlerFunc) { r.instead.Store(&h) }

// serveBeside has f told of what other replicas send.
func (r *replica) serveBeside(f func(*http.Request)) { r.beside.Store(&f) }

// ServeHTTP serves alice, as the endpoints of a gateway do.
func (r *replica) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.serve(w, req, endpointOf(req), mcp.Sender{Share: mcp.Share{Principal: alice}, Identity: &mcp.Identity{Principal: alice}}, false)
}

func endpointOf(req *http.Request) Endpoint {
	return Endpoint(strings.TrimSuffix(req.URL.Path, "/"+serverName))
}

// serve has a request answered where it belongs.
func (r *replica) serve(w http.ResponseWriter, req *http.Request, at Endpoint, sender mcp.Sender, moved bool) {
	var body []byte
	isRead := false
	read := func() (m *wire.Message, era spec.Era, ok bool) {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return nil, spec.Unknown, false
		}
		isRead = true
		parsed, err := r.server.o.Parse(body)
		if err != nil {
			return nil, spec.Unknown, true
		}
		return &parsed, max(headerEra(req), spec.Legacy), true
	}
	claimed := headerEra(req)
	if claimed == spec.Modern && req.Header.Get(spec.HeaderSession) != "" {
		claimed = spec.Legacy
	}
	peek := func() (era spec.Era, ok bool) {
		m, _, ok := read()
		req.Body = io.NopCloser(bytes.NewReader(body))
		if ok && m != nil && wire.Get(m.Meta, spec.MetaProtocolVersion) != nil {
			return spec.Modern, true
		}
		return spec.Legacy, ok
	}
	lent := false // the room of a WebSocket
	give := func(c sockets.Socket) { r.sockets.Release(sender.Share, c) }
	release, answered := r.server.Elsewhere(&Request{W: w, R: req, At: at, Sender: sender, Moved: moved, Claimed: claimed, Read: read, Peek: peek, Room: func() (func(sockets.Socket), bool) {
		if _, err := r.sockets.Reserve(sender.Share); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return nil, false
		}
		lent = true
		return give, true
	}})
	defer release()
	if answered {
		return
	}
	if lent {
		defer give(nil)
	}
	if !isRead {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	r.serveHere(w, req, at, sender, body)
}

// serveHere answers a request.
func (r *replica) serveHere(w http.ResponseWriter, req *http.Request, at Endpoint, sender mcp.Sender, body []byte) {
	w.Header().Set(servedBy, r.instance)
	w.Header().Set(servedVia, sender.Via)
	w.Header().Set(servedFor, string(sender.Principal))
	session := req.Header.Get(spec.HeaderSession)
	switch {
	case transport.IsUpgrade(req):
		r.echo(w, req, sender)
	case at == Events:
		r.front.ServeEvents(w, req, Messages.Path(serverName), sender, func(id legacyfront.SessionID) { w.Header().Set(peer.Opening, string(id)) })
	case session != "" && !r.front.Has(legacyfront.SessionID(session)):
		http.Error(w, "no such session", http.StatusNotFound)
	default:
		_, _ = w.Write(body)
	}
}

// echo serves a WebSocket: it sends back what it gets.
func (r *replica) echo(w http.ResponseWriter, req *http.Request, sender mcp.Sender) {
	lent := r.sockets.Lend(sender.Via)
	conn, err := transport.AcceptWebSocket(w, req, transport.AcceptOptions{Header: http.Header{peer.Opening: {lent.Name}, servedBy: {r.instance}}})
	if err != nil {
		r.t.Errorf("AcceptWebSocket = %v", err)
		lent.End()
		return
	}
	r.running.Go(func() { // ends with the connection, or with all sockets
		defer lent.End()
		defer context.AfterFunc(lent.Live, func() { _ = conn.Close() })()
		for {
			text, err := conn.Read()
			if err != nil || conn.Write(text) != nil {
				_ = conn.Close()
				return
			}
		}
	})
}

// An answer is what a client gets.
type answer struct {
	status  int
	by, via string
	header  http.Header
	body    string
}

// request returns a request of a client.
func request(t *testing.T, method, path, body string, h http.Header) *http.Request {
	req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	for name, values := range h {
		req.Header[name] = values
	}
	return req
}

// send sends a request of alice to the endpoint for Streamable HTTP.
func (r *replica) send(method, body string, h http.Header) answer {
	return r.ask(request(r.t, method, Streamable.Path(serverName), body, h))
}

func (r *replica) ask(req *http.Request) answer {
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return answer{w.Code, w.Header().Get(servedBy), w.Header().Get(servedVia), w.Header(), w.Body.String()}
}

// wantServed wants an answer that a replica has made of the whole request.
func wantServed(t *testing.T, what string, got answer, by *replica, body string) {
	t.Helper()
	if got.status != http.StatusOK || got.by != by.instance || got.body != body {
		t.Errorf("%s = %d by %q: %.300s, want it served by %s", what, got.status, got.by, got.body, by.instance)
	}
}

// adopt has a session of alice at a replica.
func (r *replica) adopt(id string) {
	r.t.Helper()
	h := legacyfront.Handover{
		ID: legacyfront.SessionID(id), Name: "name of " + id, Opener: mcp.Sender{Share: mcp.Share{Principal: alice}, Identity: &mcp.Identity{Principal: alice}},
		Revision: spec.Rev20251125, Capabilities: []byte(`{}`), ClientInfo: []byte(`{"name":"client"}`), Opened: 1234,
	}
	if err := r.front.Adopt(h); err != nil {
		r.t.Fatal(err)
	}
}

func (r *replica) has(id string) bool { return r.front.Has(legacyfront.SessionID(id)) }

// ofSession are the headers of a request of a session.
func ofSession(id string) http.Header { return http.Header{spec.HeaderSession: {id}} }

// modern are those of a modern request.
var modern = http.Header{http.CanonicalHeaderKey(spec.HeaderProtocolVersion): {string(spec.Rev20260728)}}

const listTools = `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`

// A standIn is the server behind a replica: only its era is asked for.
type standIn struct {
	mcp.Back
	r *replica
}

func (s *standIn) Era() spec.Era { return spec.Era(s.r.era.Load()) }

func (s *standIn) Err() error {
	if s.r.starting.Load() {
		return mcp.ErrStarting
	}
	return nil
}

func (s *standIn) Describe(context.Context, *mcp.Request) (*mcp.Description, error) {
	return &mcp.Description{Capabilities: []byte(`{}`)}, nil
}

func (s *standIn) Subscribe(*mcp.Request, *fanout.Mailbox, mcp.SubscribeOptions) (mcp.Subscription, error) {
	return subscription{}, nil
}

type subscription struct{}

func (subscription) Add(_ context.Context, want mcp.Filter) (mcp.Filter, error) { return want, nil }
func (subscription) Remove(...string)                                           {}
func (subscription) Close()                                                     {}

// limitCounts counts limits by name.
type limitCounts struct {
	mcp.NoMetrics
	counts *bridgetest.Counts
}

// Limit implements [mcp.Metrics].
func (m limitCounts) Limit(_, name string) { m.counts.Add(name) }
