package gateway

import (
	"bufio"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

const replicaKey = "a key of all replicas"

// A replica is a gateway with a peer listener, beside others.
type replica struct {
	rig
	listener *httptest.Server
	engine   *replicastest.Engine
	peers    *peer.Group
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
	r.listener = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { handler.ServeHTTP(w, req) }))
	r.engine = broker.Join(t, rand.Text()[:8], r.listener.Listener.Addr().String())
	opts := Options{Logger: slog.New(slog.NewTextHandler(r.logs, nil))}
	var err error
	if r.peers, err = peer.New(peer.Options{Engine: r.engine, Keys: []string{replicaKey}, Logger: opts.Logger}); err != nil {
		t.Fatal(err)
	}
	opts.Peers, opts.StateKeys = r.peers, []string{replicaKey}
	opts.Servers = []ServerOptions{{Name: "peer", Open: func(c mcp.Changes) (mcp.Back, error) {
		return legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", URL: p.URL, Changes: c, Logger: opts.Logger, Linger: time.Millisecond,
			ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
	}}}
	if change != nil {
		change(&opts)
	}
	if r.g, err = New(opts); err != nil {
		t.Fatal(err)
	}
	handler = r.g.PeerHandler()
	r.Server = httptest.NewServer(r.g)
	t.Cleanup(func() {
		r.g.EndStreams()
		r.Server.Close()
		r.listener.Close()
		if err := r.g.Close(context.Background()); err != nil {
			t.Errorf("Close() = %v", err)
		}
		r.peers.Close()
		p.CloseClientConnections()
	})
	return r
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
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
