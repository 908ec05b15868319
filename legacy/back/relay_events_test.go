package back

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// linkedToEvents returns a front whose sessions are linked with p's.
func linkedToEvents(t *testing.T, p *legacytest.EventServer) *linkedFront {
	return linkedTo(t, newTestBack(t, Options{Options: upstream.Options{URL: p.URL + "/sse"}, Transport: TransportSSE}))
}

// The answer that comes on the stream may overtake that of the POST: the session is
// none the worse for it, and its client can ask on.
func TestS02AnswersBeforeTheirPosts(t *testing.T) {
	p := legacytest.NewEventServer(t)
	hold := make(chan struct{})
	defer close(hold)
	p.On[spec.MethodToolsCall] = func(s *legacytest.EventStream, m wire.Message) string {
		s.Write(string(wire.AppendResult(nil, m.ID, []byte(`{"content":[]}`), nil)))
		<-hold
		return ""
	}
	g := linkedToEvents(t, p).Enter(t, "2025-11-25")
	for n := range 3 {
		if r := g.Call(t, spec.MethodToolsCall, `{}`); r.Status != 200 || r.Code() != 0 {
			t.Fatalf("call %d = %d %s, want its answer", n, r.Status, r.Body)
		}
	}
}

// A server that answers a POST only once it has run the request gets the client's
// other messages meanwhile, and what it asked is answered.
func TestS02QuestionsBeforeThePostsEnd(t *testing.T) {
	p := legacytest.NewEventServer(t)
	answered := make(chan struct{})
	answer := sync.OnceFunc(func() { close(answered) })
	defer answer()
	p.On[spec.MethodToolsCall] = func(s *legacytest.EventStream, m wire.Message) string {
		s.Write(`{"jsonrpc":"2.0","id":"q","method":"ping"}`)
		<-answered
		return string(wire.AppendResult(nil, m.ID, []byte(`{"content":[]}`), nil))
	}
	p.Post = func(_ http.ResponseWriter, m wire.Message) bool {
		if m.Kind() == wire.Response {
			answer()
		}
		return false
	}
	st := linkedToEvents(t, p)
	sent := make(chan string, 4)
	pipe := st.front.OpenConn(func(msg []byte) error { sent <- string(msg); return nil }, mcp.Share{Principal: "ada"})
	t.Cleanup(pipe.Close)
	say := func(text string) {
		m, err := wire.Parse([]byte(text), wire.Options{})
		if err != nil {
			t.Fatal(err)
		}
		pipe.Serve(&m)
	}
	say(legacytest.OddInitialize)
	<-sent
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	begun := time.Now()
	say(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}`)
	if got, want := <-sent, `{"jsonrpc":"2.0","id":1,"method":"ping"}`; got != want {
		t.Fatalf("the client got %s, want %s", got, want)
	}
	say(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	if got, want := <-sent, `{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`; got != want {
		t.Errorf("the client got %s, want %s", got, want)
	}
	if took := time.Since(begun); took > upstream.DefaultConnectTimeout/2 {
		t.Errorf("it took %v", took)
	}
}

// A message that the server does not take, with a status that says nothing of the
// session, costs that message alone.
func TestS02RefusedPosts(t *testing.T) {
	p := legacytest.NewEventServer(t)
	p.Post = func(w http.ResponseWriter, m wire.Message) bool {
		no := m.Method == "vendor/odd"
		if no {
			w.WriteHeader(http.StatusInternalServerError)
		}
		return no
	}
	p.On[spec.MethodPing] = legacytest.Result(`{}`)
	g := linkedToEvents(t, p).Enter(t, "2025-11-25")
	if r := g.Call(t, "vendor/odd", `{}`); r.Code() != spec.CodeInternal {
		t.Errorf("call = %d %s, want an error that names the status", r.Status, r.Body)
	}
	if r := g.Post(t, `{"jsonrpc":"2.0","method":"vendor/odd"}`); r.Status != http.StatusBadGateway {
		t.Errorf("notification = %d %s, want 502", r.Status, r.Body)
	}
	if r := g.Call(t, spec.MethodPing, `{}`); r.Status != 200 || r.Code() != 0 {
		t.Errorf("ping after them = %d %s, want an answer", r.Status, r.Body)
	}
}
