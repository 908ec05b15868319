package back

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

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
	l := pipeTo(t, linkedTo(t, newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})))
	l.serve(legacytest.OddInitialize)
	<-l.sent
	l.serve(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	l.serve(strings.Replace(legacytest.OddInitialize, `"h"`, `"i"`, 1))
	if got, want := <-l.sent, `{"jsonrpc":"2.0","id":"i","error":{"code":-32600,"message":"initialized"}}`; got != want {
		t.Errorf("second initialize = %s, want %s", got, want)
	}
	l.serve(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if got, want := <-l.sent, `{"jsonrpc":"2.0","id":2,"result":{"session":"up","revision":"2025-06-18"}}`; got != want {
		t.Errorf("ping = %s, want %s", got, want)
	}
}

// The revision goes along from the first message after initialize, whether or not that
// is notifications/initialized.
func TestS02RevisionGoesAlong(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.Revision = "2025-06-18"
	p.On["ping"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		legacytest.AnswerJSON(w, m.ID, `{"revision":"`+r.Header.Get("Mcp-Protocol-Version")+`"}`)
	}
	st := linkedTo(t, newTestBack(t, Options{Options: upstream.Options{URL: p.URL}}))
	id := st.Send(t, "POST", legacytest.OddInitialize).Header.Get("Mcp-Session-Id")
	r := st.Send(t, "POST", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", id)
	if want := `{"jsonrpc":"2.0","id":2,"result":{"revision":"2025-06-18"}}`; r.Body != want {
		t.Errorf("ping = %s, want %s", r.Body, want)
	}
}

// Where a server has given no session, 404 for a notification says nothing of one.
func TestS02RefusedWithoutSession(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.Session = ""
	p.On["notifications/roots/list_changed"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) {
		w.WriteHeader(http.StatusNotFound)
	}
	p.On["ping"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { legacytest.AnswerJSON(w, m.ID, `{}`) }
	g := linkedTo(t, newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})).Enter(t, "2025-11-25")
	if r := g.Post(t, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`); r.Status != http.StatusBadGateway {
		t.Errorf("notification = %d %s, want 502", r.Status, r.Body)
	}
	if r := g.Call(t, "ping", `{}`); r.Status != http.StatusOK || r.Code() != 0 {
		t.Errorf("ping after it = %d %s, want an answer", r.Status, r.Body)
	}
}

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
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	m, err := wire.Parse([]byte(legacytest.OddInitialize), wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		l, _, err := b.Link(t.Context(), ask(spec.MethodInitialize, ""), &m, nil)
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
	bridgetest.Eventually(t, "no stream is left", func() bool { return b.Snapshot().Sessions == 0 && open.Load() == 0 })
}

// A notification that is answered with a stream, which is not ours to read, has been
// taken: its client does not wait for the stream's end.
func TestS02NotificationAnsweredWithAStream(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["notifications/roots/list_changed"] = func(w http.ResponseWriter, r *http.Request, _ wire.Message) {
		legacytest.StartSSE(w)
		<-r.Context().Done()
	}
	g := linkedTo(t, newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})).Enter(t, "2025-06-18")
	begun := time.Now()
	r := g.Post(t, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	if took := time.Since(begun); r.Status != http.StatusAccepted || took > upstream.DefaultConnectTimeout/2 {
		t.Errorf("notification = %d %s after %v, want 202 at once", r.Status, r.Body, took)
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
	st := linkedTo(t, newTestBack(t, Options{Options: upstream.Options{URL: p.URL}}))
	if r := st.Send(t, "POST", legacytest.OddInitialize); r.Body != `{"jsonrpc":"2.0","id":"h","error":{"code":-32602,"message":"no such version"}}` {
		t.Errorf("initialize = %d %s, want the server's refusal", r.Status, r.Body)
	}
	if got := p.Order(); got != "initialize" {
		t.Errorf("the server got %s, want initialize alone", got)
	}
}
