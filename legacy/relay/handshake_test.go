package relay_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/back"
)

func TestS02HandshakeIsTheServersOwn(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	n := 0
	p.On["initialize"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		n++
		w.Header().Set("Mcp-Session-Id", fmt.Sprintf("up-%d", n))
		legacytest.AnswerJSON(w, m.ID, legacytest.OddResult)
	}
	st := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL}}))
	var ids []string
	for range 2 {
		r := st.Send(t, "POST", legacytest.OddInitialize)
		if want := `{"jsonrpc":"2.0","id":"h","result":` + legacytest.OddResult + `}`; r.Status != 200 || r.Body != want {
			t.Fatalf("initialize = %d %s\nwant %s", r.Status, r.Body, want)
		}
		ids = append(ids, r.Header.Get("Mcp-Session-Id"))
	}
	for i, got := range p.Requests("initialize") {
		if want := strings.Replace(legacytest.OddInitialize, `"h"`, fmt.Sprint(i+1), 1); got.Body != want {
			t.Errorf("the server got %s\nwant         %s", got.Body, want)
		}
	}
	// Each has a session of its own upstream, which ends with it and not before.
	for i, id := range ids {
		st.Send(t, "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id, "Mcp-Protocol-Version", "2024-10-07")
		got := p.Requests("notifications/initialized")
		if len(got) != i+1 || got[i].Header.Get("Mcp-Session-Id") != fmt.Sprintf("up-%d", i+1) || got[i].Header.Get("Mcp-Protocol-Version") != "2024-10-07" {
			t.Errorf("initialized of session %d came with %v", i+1, got)
		}
	}
	if r := st.Send(t, "DELETE", "", "Mcp-Session-Id", ids[1]); r.Status != 204 {
		t.Errorf("DELETE = %d", r.Status)
	}
	bridgetest.Eventually(t, "ended upstream", func() bool { return len(p.Requests("DELETE")) == 1 })
	if got := p.Requests("DELETE")[0].Header.Get("Mcp-Session-Id"); got != "up-2" {
		t.Errorf("DELETE of %s, want up-2: the other client's goes on", got)
	}
}

func TestS02RefusedHandshake(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	const no = `{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["2024-11-05"]},"more":1}`
	p.On["initialize"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":%s}`, m.ID, no)
	}
	b := newBack(t, back.Options{Options: upstream.Options{URL: p.URL}})
	st := linkedTo(t, b)
	r := st.Send(t, "POST", legacytest.OddInitialize)
	if want := `{"jsonrpc":"2.0","id":"h","error":` + no + `}`; r.Body != want || r.Status != 200 || r.Header.Get("Mcp-Session-Id") != "" {
		t.Errorf("initialize = %d %s %s\nwant %s and no session", r.Status, r.Header.Get("Mcp-Session-Id"), r.Body, want)
	}
	if st.front.Sessions() != 0 || b.Err() != nil {
		t.Errorf("%d sessions, the server is down for %v; want none, and up: it answered", st.front.Sessions(), b.Err())
	}
}

// A second initialize on a connection is the server's to refuse, and the session upstream
// keeps its name whatever the refusal says.
func TestS02SecondInitialize(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	n := 0
	p.On["initialize"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		if n++; n > 1 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(wire.AppendError(nil, m.ID, wire.Errorf(-32600, "initialized")))
			return
		}
		w.Header().Set("Mcp-Session-Id", "up")
		legacytest.AnswerJSON(w, m.ID, legacytest.InitializeResult("2025-06-18", legacytest.Everything))
	}
	p.On["ping"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		legacytest.AnswerJSON(w, m.ID, `{"session":"`+r.Header.Get("Mcp-Session-Id")+`","revision":"`+r.Header.Get("Mcp-Protocol-Version")+`"}`)
	}
	l := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL}})).line(t)
	l.Send(legacytest.OddInitialize)
	l.Next()
	l.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	l.Send(strings.Replace(legacytest.OddInitialize, `"h"`, `"i"`, 1))
	l.Want(`{"jsonrpc":"2.0","id":"i","error":{"code":-32600,"message":"initialized"}}`)
	l.Send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	l.Want(`{"jsonrpc":"2.0","id":2,"result":{"session":"up","revision":"2025-06-18"}}`)
}

// The revision goes along from the first message after initialize, whether or not that
// is notifications/initialized.
func TestS02RevisionGoesAlong(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.Revision = "2025-06-18"
	p.On["ping"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		legacytest.AnswerJSON(w, m.ID, `{"revision":"`+r.Header.Get("Mcp-Protocol-Version")+`"}`)
	}
	st := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL}}))
	id := st.Send(t, "POST", legacytest.OddInitialize).Header.Get("Mcp-Session-Id")
	r := st.Send(t, "POST", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", id)
	if want := `{"jsonrpc":"2.0","id":2,"result":{"revision":"2025-06-18"}}`; r.Body != want {
		t.Errorf("ping = %s, want %s", r.Body, want)
	}
}

// A server that refuses initialize in its own words is not asked whether it is older:
// its GET stream may be open to all, and never say where to post.
func TestS02RefusalIsNoOlderTransport(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["initialize"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(wire.AppendError(nil, m.ID, wire.Errorf(spec.CodeInvalidParams, "no such version")))
	}
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		legacytest.StartSSE(w)
		<-r.Context().Done()
	}
	st := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL}}))
	if r := st.Send(t, "POST", legacytest.OddInitialize); r.Body != `{"jsonrpc":"2.0","id":"h","error":{"code":-32602,"message":"no such version"}}` {
		t.Errorf("initialize = %d %s, want the server's refusal", r.Status, r.Body)
	}
	if got := p.Order(); got != "initialize" {
		t.Errorf("the server got %s, want initialize alone", got)
	}
}

// A connected client has a stream open, and is sent nothing.
type connected struct{ mcp.RelayClient }

func (connected) Rest() (time.Duration, bool, bool) { return 0, false, false }

// What a client says as its session ends opens no stream that nobody would end: a server
// without DELETE keeps such a stream for ever.
func TestS02InitializedAfterTheEnd(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["DELETE"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) {
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
	var open atomic.Int32
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		defer open.Add(-1)
		legacytest.StartSSE(w)
		<-r.Context().Done()
	}
	b := newBack(t, back.Options{Options: upstream.Options{URL: p.URL}})
	m, err := wire.Parse([]byte(legacytest.OddInitialize), wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const sessions = 50
	for range sessions {
		l, _, err := b.OpenRelay(t.Context(), &mcp.Request{Method: spec.MethodInitialize, Profile: mcp.Profile{Scope: "test/1"}}, &m, connected{})
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan struct{})
		go func() {
			defer close(told)
			_ = l.Send(t.Context(), &wire.Message{Method: spec.NotifyInitialized, Text: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)})
		}()
		l.Close()
		<-told
	}
	bridgetest.Eventually(t, "no stream is left", func() bool { return len(p.Requests("DELETE")) == sessions && open.Load() == 0 })
}

// Roots of the config stand for the client's.
func TestS02ConfiguredRoots(t *testing.T) {
	b, peers := pipeBack(t, back.Options{Options: upstream.Options{Settings: settings.Server{Roots: []string{"file:///a"}}}})
	st := linkedTo(t, b)
	answer := make(chan string, 1)
	go func() {
		p := <-peers
		if params := p.Handshake(legacytest.Everything); !strings.Contains(params, `"roots":{}`) {
			t.Errorf("initialize = %s, want roots declared", params)
		}
		p.Write(`{"jsonrpc":"2.0","id":5,"method":"roots/list"}`)
		answer <- string(p.Read().Text)
	}()
	st.Enter(t, "2025-11-25")
	if got := <-answer; got != `{"jsonrpc":"2.0","id":5,"result":{"roots":[{"uri":"file:///a"}]}}` {
		t.Errorf("the server got %s", got)
	}
}

// What is hidden crosses in neither direction of a session that is passed on, and all
// else has its bytes.
func TestT32HiddenInLinkedSessions(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	welcome := strings.Replace(legacytest.OddResult, `"new":`, `"extensions":{"com.example/x":{},"com.example/y":{"n":1.0}},"experimental":{"e":{}},"new":`, 1)
	p.On["initialize"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { legacytest.AnswerJSON(w, m.ID, welcome) }
	st := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL, Settings: settings.Server{Extensions: settings.Extensions{Hide: []string{"com.example/x", "e"}}}}}))
	shown := strings.Replace(legacytest.OddResult, `"new":`, `"extensions":{"com.example/y":{"n":1.0}},"new":`, 1)
	if r, want := st.Send(t, "POST", legacytest.OddInitialize), `{"jsonrpc":"2.0","id":"h","result":`+shown+`}`; r.Body != want {
		t.Errorf("initialize = %s\nwant         %s", r.Body, want)
	}
	want := strings.Replace(strings.Replace(legacytest.OddInitialize, `"h"`, "1", 1), `"experimental":{"e":{}},`, "", 1)
	if got := p.Requests("initialize")[0].Body; got != want {
		t.Errorf("the server got %s\nwant         %s", got, want)
	}
}
