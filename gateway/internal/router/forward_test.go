package router

import (
	"bufio"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

const replicaKey = "a key of all replicas"

// dialTimeout is longer than the default: these replicas answer late on a busy machine.
const dialTimeout = 5 * time.Second

// A replica is a gateway with a peer listener, beside others.
type replica struct {
	rig
	listener *httptest.Server
	conns    *killable // of listener
	engine   *replicastest.Engine
	peers    *peer.Group
	stall    atomic.Pointer[chan struct{}]    // see stallEvictions
	instead  atomic.Pointer[http.HandlerFunc] // serves other replicas; nil for the gateway
}

// A killable listener keeps its connections, to end them as the death of a process does.
type killable struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (m *killable) Accept() (net.Conn, error) {
	c, err := m.Listener.Accept()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.conns = append(m.conns, c)
	}
	return c, err
}

func (m *killable) kill() {
	_ = m.Listener.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
}

// newReplicas returns n gateways on loopback with the same server, which know each other.
func newReplicas(t *testing.T, n int, change func(*Options)) []*replica {
	t.Helper()
	broker, p := replicastest.New(), newPeer(t)
	var all []*replica
	for range n {
		all = append(all, newReplica(t, broker, p, change))
	}
	for _, r := range all {
		eventually(t, func() bool { return len(r.peers.View().Members) == n })
	}
	return all
}

func newReplica(t *testing.T, broker *replicastest.Broker, p *scriptedPeer, change func(*Options)) *replica {
	t.Helper()
	r := &replica{rig: rig{peer: p, logs: &bridgetest.Log{}}}
	var handler http.Handler
	r.listener = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if instead := r.instead.Load(); instead != nil {
			(*instead)(w, req)
			return
		}
		handler.ServeHTTP(w, req)
	}))
	r.conns = &killable{Listener: r.listener.Listener}
	r.listener.Listener, r.listener.Config.MaxHeaderBytes = r.conns, 128<<10
	self := replicas.Replica{Instance: rand.Text()[:8], Addr: r.listener.Listener.Addr().String(), Version: "test", Revision: replicas.Revision}
	r.engine = broker.Unjoined(t)
	r.engine.Update(self)
	opts := Options{Logger: slog.New(slog.NewTextHandler(r.logs, nil))}
	var err error
	if r.peers, err = peer.New(peer.Options{Engine: r.engine, Keys: []string{replicaKey}, DialTimeout: dialTimeout, Logger: opts.Logger}); err != nil {
		t.Fatal(err)
	}
	r.engine.Meet(r.peers)
	if err := r.engine.Join(context.Background(), self); err != nil {
		t.Fatal(err)
	}
	opts.Peers, opts.StateKeys = r.peers, []string{replicaKey}
	opts.Servers = []ServerOptions{{Name: "peer", Open: func(c mcp.Changes) (mcp.Back, error) {
		return legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", URL: p.URL, Changes: c, Logger: opts.Logger, Settings: settings.Server{Linger: time.Millisecond},
			ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
	}}}
	if change != nil {
		change(&opts)
	}
	if r.g, err = New(opts); err != nil {
		t.Fatal(err)
	}
	handler = r.stallEvictions(r.g.PeerHandler())
	r.listener.Start() // those who have connected before wait
	r.Server = httptest.NewServer(r.g)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replica %s logged:\n%s", self.Instance, r.logs.String())
		}
		r.g.EndStreams()
		r.Server.Close()
		r.listener.Close()
		if err := r.g.Close(context.Background()); err != nil {
			t.Errorf("Close() = %v", err)
		}
		r.engine.SetFrozen(false)
		if err := r.engine.Close(context.Background()); err != nil { // it asks the others
			t.Errorf("closing the engine: %v", err)
		}
		r.peers.Close()
		p.CloseClientConnections()
	})
	return r
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}

func sessionHeaders(session string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if session != "" {
		h.Set("Mcp-Session-Id", session)
	}
	return h
}

const initializeBody = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

// initialize opens a session at a replica.
func (r *replica) initialize(t *testing.T) (session string) {
	t.Helper()
	a := r.send(t, http.MethodPost, initializeBody, sessionHeaders(""))
	if session = a.header.Get("Mcp-Session-Id"); session == "" {
		t.Fatalf("initialize = %+v", a)
	}
	if a := r.send(t, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, sessionHeaders(session)); a.status != http.StatusAccepted {
		t.Fatalf("initialized = %+v", a)
	}
	return session
}

// A session is served by each replica, and its stream too.
func TestForwardSession(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 3, nil)
	a, b, c := all[0], all[1], all[2]
	session := a.initialize(t)
	a.peer.answer("tools/call", `{"content":[{"type":"text","text":"`+strings.Repeat("x", 100<<10)+`"}]}`)
	for _, r := range all {
		local := r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}`, sessionHeaders(session))
		if local.status != 200 || !strings.Contains(local.body, "xxxx") {
			t.Fatalf("call = %d %.200s", local.status, local.body)
		}
	}
	res := b.open(t, http.MethodGet, "", sessionHeaders(session))
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type"); res.StatusCode != 200 || got != "text/event-stream" {
		t.Fatalf("GET = %d %s", res.StatusCode, got)
	}
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || line != ":\n" {
		t.Errorf("the stream begins with %q, %v", line, err)
	}
	eventually(t, func() bool { return a.g.Snapshot().Sessions == 1 })
	if got := c.send(t, http.MethodDelete, "", sessionHeaders(session)); got.status != http.StatusNoContent {
		t.Errorf("DELETE = %+v", got)
	}
	if rest, err := io.ReadAll(res.Body); err != nil {
		t.Errorf("the rest of the stream: %q, %v", rest, err)
	}
	if got := b.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, sessionHeaders(session)); got.status != http.StatusNotFound || got.code() != -32001 {
		t.Errorf("after its end: %+v", got)
	}
}

// Events pass at once, resumed streams too, and a client that leaves is noticed where its
// session is.
func TestForwardStream(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 3, nil)
	a, b, c := all[0], all[1], all[2]
	session := a.initialize(t)
	res := b.open(t, http.MethodGet, "", sessionHeaders(session))
	events := bufio.NewReader(res.Body)
	eventually(t, a.peer.isListening)
	var times []time.Duration
	for range 10 {
		began := time.Now()
		a.peer.push(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		if _, data := nextEvent(t, events); !strings.Contains(data, "list_changed") {
			t.Fatalf("event %q", data)
		}
		times = append(times, time.Since(began))
	}
	wantAtOnce(t, "an event", times)
	a.peer.push(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
	last, _ := nextEvent(t, events)
	res.Body.Close()
	eventually(t, func() bool { return c.g.inflight.Len() == 0 && b.g.inflight.Len() == 0 })
	a.peer.push(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
	header := sessionHeaders(session)
	header.Set("Last-Event-Id", last)
	res = c.open(t, http.MethodGet, "", header)
	defer res.Body.Close()
	if _, data := nextEvent(t, bufio.NewReader(res.Body)); !strings.Contains(data, "resources/list_changed") {
		t.Errorf("after %s: %q", last, data)
	}
}

// wantAtOnce wants most of what was done to have taken less than a second: on a busy machine some may
// take longer.
func wantAtOnce(t *testing.T, what string, times []time.Duration) {
	t.Helper()
	if slices.Sort(times); times[len(times)/2] > time.Second {
		t.Errorf("%s takes %v; all of them: %v", what, times[len(times)/2], times)
	}
}

// nextEvent returns the id and the data of the next event with data.
func nextEvent(t *testing.T, r *bufio.Reader) (id, data string) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("reading an event: %v", err)
		}
		if text, ok := strings.CutPrefix(line, "id: "); ok {
			id = strings.TrimSpace(text)
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok && strings.TrimSpace(text) != "" {
			return id, strings.TrimSpace(text)
		}
	}
}

// EndStreams ends forwarded streams in order, as others.
func TestForwardStreamEnds(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, nil)
	session := all[0].initialize(t)
	res := all[1].open(t, http.MethodGet, "", sessionHeaders(session))
	defer res.Body.Close()
	eventually(t, all[0].peer.isListening)
	all[1].g.EndStreams()
	if rest, err := io.ReadAll(res.Body); err != nil {
		t.Errorf("the stream's end: %q, %v", rest, err)
	}
	again := all[0].open(t, http.MethodGet, "", sessionHeaders(session))
	defer again.Body.Close()
	if again.StatusCode != 200 {
		t.Errorf("the stream elsewhere = %d", again.StatusCode)
	}
}

func TestForwardEventSession(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, nil)
	a, b := all[0], all[1]
	c := a.openEvents(t, "/sse/peer", nil)
	c.r = &b.rig // where all messages are posted
	c.initialize("2024-11-05", `{}`)
	a.peer.answer("tools/list", `{"tools":[]}`)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	c.want(`"id":1,"result"`)
	if got := c.post(`{"jsonrpc"`); got.status != http.StatusBadRequest {
		t.Errorf("half a message = %+v", got)
	}
}

// A parked call is continued from each replica, in any order.
func TestForwardRetry(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 3, nil)
	a, b, c := all[0], all[1], all[2]
	a.peer.handle["tools/call"] = func(c *peerCall) string {
		return say(c.ask("elicitation/create", `{"message":"1"}`) + c.ask("roots/list", `{}`))
	}
	rd := a.tool(t, "1", allQuestions, "").round(t)
	rd = b.tool(t, "2", allQuestions, rd.retry(map[string]string{"elicitation/create": accept})).round(t)
	if got := c.tool(t, "3", allQuestions, rd.retry(map[string]string{"roots/list": someDir})); !strings.Contains(got.body, "file:///x") || !strings.Contains(got.body, `"id":3`) {
		t.Errorf("the last retry = %+v", got)
	}
	if got := b.tool(t, "4", allQuestions, rd.retry(map[string]string{"roots/list": someDir})); !strings.Contains(got.body, "requestState is not valid") {
		t.Errorf("a retry of a call that is over = %+v", got)
	}
}

// What a replica held is gone with it: clients are told at once.
func TestForwardHolderDies(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, nil)
	a, b := all[0], all[1]
	a.peer.handle["tools/call"] = func(c *peerCall) string { return say(c.ask("roots/list", `{}`)) }
	session, rd := a.initialize(t), a.tool(t, "1", allQuestions, "").round(t)
	res := b.open(t, http.MethodGet, "", sessionHeaders(session))
	defer res.Body.Close()
	eventually(t, a.peer.isListening)
	a.conns.kill()
	if rest, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("the stream ended in order after %q", rest)
	}
	list := func() answer {
		return b.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, sessionHeaders(session))
	}
	eventually(t, func() bool { return list().status != http.StatusServiceUnavailable }) // what dies may have connected just before
	var times []time.Duration
	for i := range 20 {
		began := time.Now()
		got := list()
		times = append(times, time.Since(began))
		if got.status != http.StatusNotFound || got.code() != -32001 {
			t.Fatalf("request %d after %v: %+v", i, times[i], got)
		}
	}
	wantAtOnce(t, "a request", times)
	if got := b.tool(t, "3", allQuestions, rd.retry(map[string]string{"roots/list": someDir})); got.code() != -32602 || !strings.Contains(got.body, "the replica that held this call is gone; send it anew") {
		t.Errorf("retry = %+v", got)
	}
}

// A seen remembers the requests that an observer is told of, and where they came from.
type seen struct {
	mu    sync.Mutex
	lines []string
}

func (s *seen) Begin(r *trace.Request) trace.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	host, _, _ := net.SplitHostPort(r.Arrival.Peer)
	s.lines = append(s.lines, r.Method+" from "+host+" via "+r.Arrival.Via)
	return nil
}

// A forwarded request is observed once: where it is served, as one of its client.
func TestForwardSeenOnce(t *testing.T) {
	t.Parallel()
	var s seen
	all := newReplicas(t, 2, func(o *Options) {
		o.Observers = new(trace.Observers)
		o.Observers.Add(&s)
	})
	session := all[0].initialize(t)
	all[0].peer.answer("tools/list", `{"tools":[]}`)
	all[1].send(t, http.MethodPost, listTools, sessionHeaders(session))
	s.mu.Lock()
	defer s.mu.Unlock()
	if got, want := strings.Join(s.lines, "\n"), "initialize from 127.0.0.1 via \ntools/list from 127.0.0.1 via "+all[1].peers.Self().Instance; got != want {
		t.Errorf("observed:\n%s\nwant:\n%s", got, want)
	}
}

// A stream that is passed on ends in order when its server is served no more at the edge.
func TestForwardStreamEndsWithItsServer(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, nil)
	session := all[0].initialize(t)
	res := all[1].open(t, http.MethodGet, "", sessionHeaders(session))
	defer res.Body.Close()
	eventually(t, all[0].peer.isListening)
	if err := all[1].g.Reload(Options{StateKeys: []string{replicaKey}, Peers: all[1].peers}); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(res.Body); err != nil {
		t.Errorf("the stream's end: %q, %v", rest, err)
	}
}
