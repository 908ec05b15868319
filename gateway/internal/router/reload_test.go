package router

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// openAnew returns what opens another back of the rig's peer.
func (r *rig) openAnew(p *scriptedPeer) func(mcp.Changes) (mcp.Back, error) {
	return func(c mcp.Changes) (mcp.Back, error) {
		return legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", URL: p.URL, Changes: c, Settings: settings.Server{Linger: time.Millisecond},
			ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}})
	}
}

// replace has the rig's server replaced by one that is reached like it.
func (r *rig) replace(t *testing.T) {
	t.Helper()
	r.reload(t, Options{Servers: []ServerOptions{{Name: "peer", Open: r.openAnew(r.peer)}}})
}

func (r *rig) reload(t *testing.T, o Options) {
	t.Helper()
	if err := r.g.Reload(o); err != nil {
		t.Fatal(err)
	}
}

// A listen stream of a server that is replaced ends with its result, and one that is opened
// then hears of the changes of the next.
func TestReloadEndsStreams(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	f := r.listen(t, "7", `{"resourceSubscriptions":["note://todo"]}`)
	f.next()
	r.replace(t)
	if got := f.next(); !strings.Contains(got, `"id":7,"result":{"resultType":"complete"`) {
		t.Errorf("the stream ended with %q, want its result", got)
	}
	if got := f.next(); got != "" {
		t.Errorf("after the end: %s", got)
	}
	again := r.listen(t, "8", `{"resourceSubscriptions":["note://todo"]}`)
	again.next()
	r.eventually(t, "the former is gone", func() bool { return r.g.Snapshot().Streams == 1 })
	r.peer.push(updated("note://todo"))
	if got := again.next(); !strings.Contains(got, "note://todo") {
		t.Errorf("frame = %s, want the change", got)
	}
	again.res.Body.Close()
	r.wantNothingLeft(t)
}

// A server that is kept is not touched: its streams, sessions and WebSockets go on.
func TestReloadKeeps(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	f := r.listen(t, "7", `{"resourceSubscriptions":["note://todo"]}`)
	f.next()
	session := r.enter(t)
	l := r.shaken(t)
	opened := len(r.peer.sent("initialize"))
	other := newPeer(t)
	for n := range 10 {
		r.reload(t, Options{Servers: []ServerOptions{{Name: "peer", Kept: true}, {Name: "other", Open: r.openAnew(other)}}})
		r.peer.push(updated("note://todo"))
		if got := f.next(); !strings.Contains(got, "note://todo") {
			t.Fatalf("%d: frame = %s, want the change", n, got)
		}
		l.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, n+1))
		for answer := fmt.Sprintf(`"id":%d,"result"`, n+1); !strings.Contains(<-l.read, answer); {
		}
		if got := r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, legacyHeaders(session)); got.status != 200 {
			t.Fatalf("%d: tools/list of the session = %d %s", n, got.status, got.body)
		}
	}
	if got := len(r.peer.sent("initialize")); got != opened {
		t.Errorf("%d sessions more with the server that is kept", got-opened)
	}
}

// A session of a legacy client ends with its server: the client is told to open another one.
func TestReloadEndsSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	session := r.enter(t)
	get := newLines(t, r.open(t, http.MethodGet, "", legacyHeaders(session)))
	l := r.shaken(t)
	r.replace(t)
	if got := r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, legacyHeaders(session)); got.status != 404 {
		t.Errorf("request of a session that has ended = %d %s, want 404", got.status, got.body)
	}
	get.wantEnd()
	want := transport.CloseError{Code: 1012, Reason: `server "peer" was changed in the gateway's configuration; connect again`}
	if got := l.closed(); got != want {
		t.Errorf("WebSocket closed with %+v, want %+v", got, want)
	}
	r.enter(t)
	r.reload(t, Options{})
	if got := r.call(t, "1", "tools/list", "", ""); got.status != 404 || !strings.Contains(got.body, `there is no server named \"peer\"; the servers are []`) {
		t.Errorf("request to a server that was removed = %d %s", got.status, got.body)
	}
	r.wantNothingLeft(t)
}

// Fronts know that they end before subscriptions do, which would otherwise end sessions, and with
// them calls that may take their time. What is kept of the server goes just before subscriptions end.
func TestReloadEndsInOrder(t *testing.T) {
	t.Parallel()
	statuses := make(chan int, 1)
	var former *server
	left, leave := context.WithCancel(t.Context())
	leave()
	r := newKeepingRig(t, func(o *Options) {
		o.Metrics = evictionHook{f: func(string) {
			w := httptest.NewRecorder()
			former.legacy.ServeEvents(w, httptest.NewRequestWithContext(left, http.MethodGet, "/", nil), "/", mcp.Sender{}, nil)
			statuses <- w.Code
		}}
	})
	former = r.g.now().servers["peer"]
	r.peer.answer("tools/list", `{"tools":[]}`)
	r.list(t, "")
	r.replace(t)
	if got := <-statuses; got != http.StatusServiceUnavailable {
		t.Errorf("a stream that was opened as the subscriptions ended = %d, want it refused", got)
	}
}

// A call that waits for its client is over: the client learns it when it answers.
func TestReloadParked(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	asked := make(chan string, 1)
	r.peer.handle["tools/call"] = func(c *peerCall) string {
		asked <- c.ask("elicitation/create", `{"message":"name?","requestedSchema":{"type":"object","properties":{}}}`)
		return say("done")
	}
	rd := r.tool(t, "1", allQuestions, "").round(t)
	r.replace(t)
	got := r.tool(t, "2", allQuestions, rd.retry(map[string]string{"elicitation/create": accept}))
	if got.code() != -32602 || !strings.Contains(got.body, "requestState") {
		t.Errorf("retry of a call that is over = %d %s, want that its requestState is not valid", got.status, got.body)
	}
	if text := <-asked; text == accept {
		t.Error("the server got an answer for a call that is over")
	}
}

// What a server still has to say after it was replaced reaches nobody who talks to the next.
func TestReloadScopesApart(t *testing.T) {
	t.Parallel()
	r := newKeepingRig(t, nil)
	r.peer.answer("tools/list", `{"tools":[]}`)
	former := r.g.now().servers["peer"]
	r.list(t, "")
	keep := r.g.now().opts.Servers[0]
	keep.Open = r.openAnew(r.peer)
	r.reload(t, Options{Servers: []ServerOptions{keep}})
	next := r.g.now().servers["peer"]
	if former.profiles.Scope() == next.profiles.Scope() || mcp.ServerOf(former.profiles.Scope()+"/x") != mcp.ServerOf(next.profiles.Scope()+"/x") {
		t.Errorf("scopes begin with %q and %q, want different ones of one server", former.profiles.Scope(), next.profiles.Scope())
	}
	r.peer.answer("tools/list", `{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`)
	if got := r.list(t, ""); !strings.Contains(got, "{a}") {
		t.Errorf("tools/list = %s, want that of the next server", got)
	}
}

// However many requests run while servers are replaced, each is served by one of them.
func TestReloadRace(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if got := r.call(t, "1", "tools/call", "a", `"name":"a"`); got.status != 200 || strings.Contains(got.body, `"error"`) {
					t.Errorf("call = %d %s", got.status, got.body)
					return
				}
			}
		})
	}
	for range 30 {
		r.replace(t)
		time.Sleep(2 * time.Millisecond)
	}
	cancel()
	wg.Wait()
	r.eventually(t, "the sessions of the former ones ended", func() bool { return r.peer.ended() >= len(r.peer.sent("initialize"))-1 })
}

// Limits count at once, in both directions.
func TestReloadLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	first := r.listen(t, "1", `{"toolsListChanged":true}`)
	first.next()
	kept := []ServerOptions{{Name: "peer", Kept: true}}
	r.reload(t, Options{Servers: kept, Limits: limits.Set{"streams": 1, "body": 1024}})
	listen := modernBody("2", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	if got := r.send(t, http.MethodPost, listen, modernHeaders("subscriptions/listen", "")); !strings.Contains(got.body, "1 listen streams are open, the limit") {
		t.Errorf("a second stream = %d %s, want it refused", got.status, got.body)
	}
	long := `"name":"a","arguments":{"x":"` + strings.Repeat("x", 2048) + `"}`
	if got := r.call(t, "3", "tools/call", "a", long); got.status != 413 {
		t.Errorf("a long body = %d %s, want 413", got.status, got.body)
	}
	r.reload(t, Options{Servers: kept})
	r.listen(t, "4", `{"toolsListChanged":true}`).next()
	if got := r.call(t, "5", "tools/call", "a", long); got.status != 200 {
		t.Errorf("a long body = %d %s, want it served", got.status, got.body)
	}
}

// A reload that fails leaves all as it was, and nothing behind.
func TestReloadFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	before := r.g.now()
	opened := false
	for _, o := range []Options{
		{Servers: []ServerOptions{{Name: "other", Open: func(c mcp.Changes) (mcp.Back, error) { opened = true; return r.openAnew(r.peer)(c) }}, {Name: "!", Open: r.openAnew(r.peer)}}},
		{Servers: []ServerOptions{{Name: "nobody", Kept: true}}},
		{Servers: []ServerOptions{{Name: "peer", Kept: true}, {Name: "peer", Kept: true}}},
		{Servers: []ServerOptions{{Name: "peer", Open: r.openAnew(r.peer)}}, StateKeys: []string{"short"}},
	} {
		if err := r.g.Reload(o); err == nil || r.g.now() != before {
			t.Errorf("Reload(%+v) = %v, want an error and nothing changed", o, err)
		}
	}
	if !opened {
		t.Error("no server was opened before one that can't be")
	}
	if got := r.call(t, "1", "tools/call", "a", `"name":"a"`); got.status != 200 {
		t.Errorf("call = %d %s", got.status, got.body)
	}
}
