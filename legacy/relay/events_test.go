package relay_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/back"
)

// linkedToEvents returns a front whose sessions are linked with p's.
func linkedToEvents(t *testing.T, p *legacytest.EventServer) *linkedFront {
	return linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL + "/sse"}, Transport: back.TransportSSE}))
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

// Over HTTP+SSE a server may answer a POST only when it has run what was posted: what
// it asks meanwhile is asked and answered, and other calls pass it, on a connection of
// the client's that has one reader. A POST that it refuses fails its call alone.
func TestS02HTTPSSEPostsThatWait(t *testing.T) {
	t.Parallel()
	p := legacytest.NewEventServer(t)
	answered := make(chan string, 1)
	t.Cleanup(func() { close(answered) }) // the peer's Close waits for its POSTs
	p.On["tools/call"] = func(s *legacytest.EventStream, m wire.Message) string {
		s.Write(`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}`)
		return string(wire.AppendResult(nil, m.ID, []byte(`{"said":`+<-answered+`}`), nil))
	}
	p.On["ping"] = legacytest.Result(`{}`)
	p.Post = func(w http.ResponseWriter, m wire.Message) bool {
		if m.Kind() == wire.Response {
			answered <- string(m.Result)
		}
		if m.Method == "prompts/list" {
			http.Error(w, "no", http.StatusInternalServerError)
		}
		return m.Method == "prompts/list"
	}
	l := linkedToEvents(t, p).line(t)
	l.Send(legacytest.OddInitialize)
	l.Want(`{"jsonrpc":"2.0","id":"h","result":`)
	begun := time.Now()
	done := make(chan struct{})
	go func() { // one reader, as of a WebSocket
		defer close(done)
		l.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`)
		l.Send(`{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`)
	}()
	t.Cleanup(func() { l.Close(); <-done })
	l.Next()
	l.Next() // the question and the refusal, in any order
	<-done
	l.Send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	l.Want(`{"jsonrpc":"2.0","id":3,"result":{}}`)
	l.Send(`{"jsonrpc":"2.0","id":1,"result":{"text":"hi"}}`)
	l.Want(`{"jsonrpc":"2.0","id":1,"result":{"said":{"text":"hi"}}}`)
	if took := time.Since(begun); took > upstream.DefaultConnectTimeout/2 {
		t.Errorf("it took %v", took)
	}
	select {
	case <-l.Lost():
		t.Error("a POST that was refused has ended the session")
	default:
	}
}
