package relay_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/back"
)

// A call's stream that is cut off in the middle of a message is resumed behind the last
// whole one, though the server be away for a while: nothing is lost, nothing comes twice.
func TestS02CutAndResumed(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	var id atomic.Value
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		id.Store(m.ID.String())
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "id: e1\nretry: 10\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/one\"}\n\n")
		fmt.Fprint(w, "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tw")
		legacytest.Flush(w)
		panic(http.ErrAbortHandler)
	}
	var tries atomic.Int32
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		switch last := r.Header.Get("Last-Event-ID"); {
		case last == "":
			w.WriteHeader(http.StatusMethodNotAllowed)
		case last != "e1":
			t.Errorf("resumed behind %q, want e1", last)
		case tries.Add(1) == 1:
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/two\"}\n\n")
			fmt.Fprintf(w, "id: e3\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", id.Load())
		}
	}
	g := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL}})).Enter(t, "2025-11-25")
	f := legacytest.Read(t, g.Endpoint.Open(t, "POST", `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{}}`, "Mcp-Session-Id", g.ID))
	f.Want(`{"jsonrpc":"2.0","method":"notifications/one"}`)
	f.Want(`{"jsonrpc":"2.0","method":"notifications/two"}`)
	f.Want(`{"jsonrpc":"2.0","id":"c","result":{}}`)
	f.Ends()
}

// One that can't be resumed costs its call, which hears of it, and not the session.
func TestS02CutForGood(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/one\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"res", m.ID)
		legacytest.Flush(w)
		panic(http.ErrAbortHandler)
	}
	p.On["ping"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { legacytest.AnswerJSON(w, m.ID, `{}`) }
	g := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL}})).Enter(t, "2025-11-25")
	f := legacytest.Read(t, g.Endpoint.Open(t, "POST", `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{}}`, "Mcp-Session-Id", g.ID))
	f.Want(`{"jsonrpc":"2.0","method":"notifications/one"}`)
	if got, ok := f.Next(); !ok || !strings.Contains(got, `"id":"c","error":{"code":-32603`) {
		t.Errorf("event = %q, %v; want an error", got, ok)
	}
	f.Ends()
	if r := g.Call(t, "ping", `{}`); r.Status != http.StatusOK || r.Code() != 0 {
		t.Errorf("ping after it = %d %s, want an answer", r.Status, r.Body)
	}
}

// A call that its client has cancelled has no answer, though its stream end before the
// server has taken the cancellation.
func TestS02CutByItsCancellation(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	cancelled, taken := make(chan struct{}), make(chan struct{})
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) {
		legacytest.StartSSE(w)(`{"jsonrpc":"2.0","method":"notifications/one"}`)
		<-cancelled
	}
	p.On["notifications/cancelled"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) {
		close(cancelled)
		<-taken
		w.WriteHeader(http.StatusAccepted)
	}
	g := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL}})).Enter(t, "2025-11-25")
	f := legacytest.Read(t, g.Endpoint.Open(t, "POST", `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{}}`, "Mcp-Session-Id", g.ID))
	f.Want(`{"jsonrpc":"2.0","method":"notifications/one"}`)
	posted := make(chan struct{})
	go func() {
		defer close(posted)
		g.Post(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}`)
	}()
	f.Ends()
	close(taken)
	<-posted
}

// A server that knows no ping lives all the same.
func TestS02RefusedByAServerWithoutPing(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["prompts/list"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) {
		http.Error(w, "what?", http.StatusBadRequest)
	}
	p.On["ping"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(wire.AppendError(nil, m.ID, wire.Errorf(spec.CodeMethodNotFound, "what?")))
	}
	g := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL}})).Enter(t, "2025-11-25")
	for range 2 {
		if r := g.Call(t, "prompts/list", `{}`); r.Status != http.StatusOK || r.Code() != spec.CodeInternal {
			t.Errorf("prompts/list = %d %s, want an error of this call alone", r.Status, r.Body)
		}
	}
}
