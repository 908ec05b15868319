package legacytest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An HTTPServer is a legacy server over Streamable HTTP, played by a test: it
// opens sessions, hears the answers to Ask, and leaves the rest to On.
type HTTPServer struct {
	*httptest.Server

	Capabilities string
	Revision     string
	Session      string // given by initialize; empty for none

	// On serves a message other than initialize and notifications/initialized; a
	// missing method is accepted with 202.
	On map[string]func(w http.ResponseWriter, r *http.Request, m wire.Message)
	// Get serves the GET stream; nil answers 405.
	Get http.HandlerFunc

	RoundTripper http.RoundTripper // reaches a server in memory; nil for one on a socket

	Quiet bool // remember nothing

	record
	lastID  int                          // of a request of Ask; guarded by the record's lock, as is replies
	replies map[string]chan wire.Message // to requests of Ask
}

// NewHTTPServer returns a server that runs until the test ends.
func NewHTTPServer(t testing.TB) *HTTPServer {
	p := newHTTPServer()
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// NewMemoryServer returns a server in memory that runs until the test ends, for a test in a
// bubble.
func NewMemoryServer(t testing.TB) *HTTPServer {
	p := newHTTPServer()
	p.Server, p.RoundTripper = backtest.InMemory(t, p)
	return p
}

func newHTTPServer() *HTTPServer {
	return &HTTPServer{
		Capabilities: Everything,
		Revision:     "2025-11-25",
		Session:      "sess-1",
		On:           make(map[string]func(http.ResponseWriter, *http.Request, wire.Message)),
	}
}

// ServeHTTP implements [http.Handler].
func (p *HTTPServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m, ok := p.receive(r, p.Quiet)
	if !ok {
		return
	}
	on := p.On[m.Method]
	switch {
	case r.Method == http.MethodGet && p.Get != nil:
		p.Get(w, r)
	case r.Method == http.MethodDelete && p.On["DELETE"] != nil:
		p.On["DELETE"](w, r, m)
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case on != nil:
		on(w, r, m)
	case m.Kind() == wire.Response && p.reply(m):
		w.WriteHeader(http.StatusAccepted)
	case m.Method == spec.MethodInitialize:
		if p.Session != "" {
			w.Header().Set("Mcp-Session-Id", p.Session)
		}
		AnswerJSON(w, m.ID, InitializeResult(p.Revision, p.Capabilities))
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// Ask sends a request of the server by send, which writes to one of its streams, and returns
// the client's answer. It reports false if ctx ends before.
func (p *HTTPServer) Ask(ctx context.Context, send func(format string, args ...any), method, params string) (wire.Message, bool) {
	reply := make(chan wire.Message, 1)
	p.mu.Lock()
	p.lastID++
	id := p.lastID
	if p.replies == nil {
		p.replies = make(map[string]chan wire.Message)
	}
	p.replies[fmt.Sprint(id)] = reply
	p.mu.Unlock()
	send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	select {
	case m := <-reply:
		return m, true
	case <-ctx.Done():
		return wire.Message{}, false
	}
}

// reply hands the answer to a request of Ask on.
func (p *HTTPServer) reply(m wire.Message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	reply, ok := p.replies[m.ID.String()]
	if ok {
		reply <- m
		delete(p.replies, m.ID.String())
	}
	return ok
}

// AnswerJSON writes a result as JSON.
func AnswerJSON(w http.ResponseWriter, id wire.ID, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// StartSSE begins a stream and returns what writes one event's data to it.
func StartSSE(w http.ResponseWriter) func(format string, args ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	Flush(w)
	return func(format string, args ...any) {
		fmt.Fprintf(w, "event: message\ndata: "+format+"\n\n", args...)
		Flush(w)
	}
}

// Flush sends what was written.
func Flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}
