package router

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	upserver "github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// A server that speaks both eras serves each client in its own: sessions of legacy clients are
// relayed, each by itself, and modern clients use the modern side. The status says so.
func TestU06SidesByClient(t *testing.T) {
	t.Parallel()
	modern := newModernPeer(t)
	modern.answers[spec.MethodToolsList] = `{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}`
	set := settings.Server{Era: settings.EraOfClient, Linger: time.Millisecond, Timeouts: settings.Timeouts{Connect: time.Minute}}
	r := newRig(t, nil)
	both := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		q.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(spec.MetaProtocolVersion)) {
			modern.serve(w, q)
			return
		}
		r.peer.serve(w, q)
	}))
	t.Cleanup(both.Close)
	r.reload(t, Options{Servers: []ServerOptions{{Name: "peer", Settings: set, Open: func(c mcp.Changes) (mcp.Back, error) {
		return upserver.New(upserver.Options{Options: upstream.Options{Name: "peer", URL: both.URL, Settings: set, ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}}).Open(c)
	}}}})
	r.g.Start()
	r.eventually(t, "the server is ready", func() bool { return r.g.Snapshot().Servers[0].State == "ready" })
	r.peer.answer(spec.MethodPromptsGet, `{"code":0,"message":"Unknown prompt: greet"}`)
	for range 2 {
		session := r.enter(t)
		const get = `{"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"greet"}}`
		if got := r.send(t, http.MethodPost, get, legacyHeaders(session)); got.body != `{"jsonrpc":"2.0","id":3,"error":{"code":0,"message":"Unknown prompt: greet"}}` {
			t.Errorf("a legacy client got %d %s, want the error of the legacy side", got.status, got.body)
		}
	}
	if n := strings.Count(strings.Join(r.peer.sent(spec.MethodInitialize), ""), `"name":"old"`); n != 2 {
		t.Errorf("2 legacy clients have opened %d sessions with the server, want 2", n)
	}
	if got := r.call(t, "4", spec.MethodToolsList, "", ""); !strings.Contains(got.body, `"tools":[]`) || len(r.peer.sent(spec.MethodToolsList)) > 0 {
		t.Errorf("a modern client got %d %s, want the list of the modern side", got.status, got.body)
	}
	if told := r.g.Status(false).Servers[0]; told.Era != "modern" || !strings.HasSuffix(told.EraReason, "serves each client in its own") {
		t.Errorf("status = %+v, want that each client is served in its own era", told)
	}
	one, two := &mcp.Request{Era: spec.Legacy, Session: "one", Revision: spec.LatestLegacy}, &mcp.Request{Era: spec.Legacy, Session: "two", Revision: spec.LatestLegacy}
	p := r.g.now().servers["peer"].profiles
	if p.Assign(one) != nil || p.Assign(two) != nil || one.Profile.Scope == two.Profile.Scope {
		t.Errorf("two sessions have the profile %q", one.Profile.Scope)
	}
}
