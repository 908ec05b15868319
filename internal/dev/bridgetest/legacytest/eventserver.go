package legacytest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An EventServer is a legacy server over HTTP+SSE, played by a test: it opens a session
// for each GET, and leaves the rest to On.
type EventServer struct {
	*httptest.Server

	Endpoint func(session string) string // the data of the endpoint event
	// Refuse answers what is neither a GET of /sse nor a POST of /message: what asks
	// for another transport, say.
	Refuse http.HandlerFunc
	// On serves a message other than the handshake's; what it returns goes on the
	// stream.
	On map[string]func(s *EventStream, m wire.Message) string
	// Post, if not nil, answers a POST before anything else; false leaves it to On.
	Post func(w http.ResponseWriter, m wire.Message) bool

	RoundTripper http.RoundTripper // reaches a server in memory; nil for one on a socket

	record
	streams []*EventStream // guarded by the record's lock
}

// An EventStream is a session of an EventServer.
type EventStream struct {
	send func(format string, args ...any)
	mu   sync.Mutex
	cut  context.CancelFunc
}

// Write sends a message.
func (s *EventStream) Write(msg string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.send("%s", msg)
}

// Cut ends the stream.
func (s *EventStream) Cut() { s.cut() }

// NewEventServer returns a server that runs until the test ends.
func NewEventServer(t testing.TB) *EventServer {
	p := newEventServer()
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// NewMemoryEventServer returns a server in memory that runs until the test ends, for a test
// in a bubble.
func NewMemoryEventServer(t testing.TB) *EventServer {
	p := newEventServer()
	p.Server, p.RoundTripper = backtest.InMemory(t, p)
	return p
}

func newEventServer() *EventServer {
	p := &EventServer{On: make(map[string]func(*EventStream, wire.Message) string)}
	p.Endpoint = func(session string) string { return "/message?session_id=" + session }
	p.Refuse = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }
	return p
}

// ServeHTTP implements [http.Handler].
func (p *EventServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m, ok := p.receive(r, false)
	if !ok {
		return
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/sse":
		p.stream(w, r)
	case r.Method == http.MethodPost && r.URL.Path == "/message":
		p.posted(w, r, m)
	default:
		p.Refuse(w, r)
	}
}

// stream keeps a session open until its peer leaves, or the test cuts it.
func (p *EventServer) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	ctx, cut := context.WithCancel(r.Context())
	defer cut()
	s := &EventStream{cut: cut}
	s.send = func(format string, args ...any) {
		fmt.Fprintf(w, "event: message\r\ndata: "+format+"\r\n\r\n", args...)
		Flush(w)
	}
	s.mu.Lock()
	p.mu.Lock()
	p.streams = append(p.streams, s)
	n := len(p.streams) - 1
	p.mu.Unlock()
	fmt.Fprintf(w, ": hello\n\nevent: endpoint\ndata: %s\n\n", p.Endpoint(fmt.Sprint(n)))
	Flush(w)
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock() // nobody writes to w from here on
	s.send = func(string, ...any) {}
	s.mu.Unlock()
}

func (p *EventServer) posted(w http.ResponseWriter, r *http.Request, m wire.Message) {
	var n int
	_, err := fmt.Sscan(r.URL.Query().Get("session_id"), &n)
	p.mu.Lock()
	if err != nil || n >= len(p.streams) {
		p.mu.Unlock()
		w.WriteHeader(http.StatusNotFound)
		return
	}
	s, on := p.streams[n], p.On[m.Method]
	p.mu.Unlock()
	if p.Post != nil && p.Post(w, m) {
		return
	}
	if on != nil {
		if answer := on(s, m); answer != "" {
			s.Write(answer)
		}
	} else if m.Method == spec.MethodInitialize {
		s.Write(string(wire.AppendResult(nil, m.ID, []byte(InitializeResult("2024-11-05", Everything)), nil)))
	}
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, "Accepted")
}

// LastStream returns the last session.
func (p *EventServer) LastStream() *EventStream {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.streams[len(p.streams)-1]
}

// Result is an On that answers with a result.
func Result(text string) func(*EventStream, wire.Message) string {
	return func(_ *EventStream, m wire.Message) string {
		return string(wire.AppendResult(nil, m.ID, []byte(text), nil))
	}
}
