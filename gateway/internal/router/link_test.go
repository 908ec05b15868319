package router

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`

// legacyHeaders returns what a legacy client sends beside its body.
func legacyHeaders(session string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if session != "" {
		h.Set("Mcp-Session-Id", session)
	}
	return h
}

// enter opens a legacy session.
func (r *rig) enter(t *testing.T) (session string) {
	t.Helper()
	got := r.send(t, http.MethodPost, hello, legacyHeaders(""))
	if session = got.header.Get("Mcp-Session-Id"); session == "" {
		t.Fatalf("initialize = %d %s", got.status, got.body)
	}
	return session
}

// What is kept for modern clients is not served to a linked session, which asks the
// server each time.
func TestS02NothingIsKept(t *testing.T) {
	t.Parallel()
	r := newKeepingRig(t, nil)
	r.peer.answer("tools/list", `{"tools":[]}`)
	for range 2 {
		r.list(t, "")
	}
	if n := len(r.peer.sent("tools/list")); n != 1 {
		t.Fatalf("the server was asked %d times by modern clients, want once: nothing is kept here", n)
	}
	session := r.enter(t)
	for n := range 2 {
		const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
		if got := r.send(t, http.MethodPost, list, legacyHeaders(session)); got.body != `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}` {
			t.Errorf("tools/list = %d %s", got.status, got.body)
		}
		if asked := len(r.peer.sent("tools/list")); asked != n+2 {
			t.Errorf("the server was asked %d times, want %d", asked, n+2)
		}
	}
}

// Isolation is for sessions that could be shared: each client has its own whatever
// the mode, and requests are counted and told of.
func TestS02EachItsOwn(t *testing.T) {
	t.Parallel()
	for _, mode := range []settings.Isolation{settings.IsolatePrincipal, settings.IsolateNothing, settings.IsolateRequest} {
		t.Run("S-02 "+string(mode), func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.Servers[0].Settings.Isolation = mode })
			for n := range 2 {
				session := r.enter(t)
				r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:b"}}`, legacyHeaders(session))
				if got := len(r.peer.sent("initialize")); got != n+1 {
					t.Errorf("%d sessions upstream of %d clients", got, n+1)
				}
				if got := len(r.peer.sent("resources/subscribe")); got != n+1 {
					t.Errorf("%d of %d subscriptions reached the server", got, n+1)
				}
			}
			r.eventually(t, "a line per request", func() bool { // written after the answer
				logs := r.logs.String()
				return strings.Count(logs, "method=resources/subscribe") == 2 && strings.Count(logs, "method=initialize") == 2
			})
		})
	}
}

// A server that is found to be of the other era takes its sessions with it; over a
// connection that is the connection's end.
func TestS02EndsWithTheVerdict(t *testing.T) {
	t.Parallel()
	var u upgradable
	p := newPeer(t)
	r := newRig(t, func(o *Options) {
		o.Servers[0].Open = func(c mcp.Changes) (mcp.Back, error) {
			return u.open(legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", URL: p.URL, Changes: c, ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}}))
		}
	})
	r.peer = p
	session := r.enter(t)
	near, far := newFiles(t, transport.StdioOptions{})
	l := r.connectOver(t, near, far)
	l.send(hello)
	l.want(`"id":0,"result":`)
	u.upgrade(t)
	r.eventually(t, "the session ended", func() bool {
		got := r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, legacyHeaders(session))
		var e struct{ Error struct{ Code int64 } }
		return got.status == http.StatusNotFound && json.Unmarshal([]byte(got.body), &e) == nil && e.Error.Code == spec.CodeSessionNotFound
	})
	select {
	case err := <-l.ended:
		if err == nil || !strings.Contains(err.Error(), "peer") {
			t.Errorf("ServeConn() = %v, want an error that names the server", err)
		}
	case <-time.After(patience):
		t.Error("the connection goes on without its session")
	}
	// The next session is one of the modern server's, translated.
	r.enter(t)
}

// A server that does not take what a client sends does not hold up the end: neither
// that of the client's session, nor that of the gateway.
func TestF09MessageThatIsNotTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	r.peer.hold["notifications/roots/list_changed"] = hold
	l := r.shaken(t)
	l.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	r.eventually(t, "sent", func() bool { return len(r.peer.sent("notifications/roots/list_changed")) == 1 })
	begin := time.Now()
	if err := r.g.EndConnections(t.Context()); err != nil {
		t.Errorf("EndConnections() = %v", err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the end took %v, want it not to wait for the server", took)
	}
}
