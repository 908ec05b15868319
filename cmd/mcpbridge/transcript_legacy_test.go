package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// thinking is how long a scripted server takes over everything, so that the times of a
// transcript tell what waited for what. Times of the program are round: what is random
// when two things happen at once should not happen here.
const thinking = 7 * time.Millisecond

// How long the tools slow and late take: longer than a client waits for the first byte, and
// longer than streams are silent.
const (
	slowness = 3 * time.Second
	lateness = 40 * time.Second
)

// A legacyServer is a server of 2025-11-25, at the wire: over Streamable HTTP, HTTP+SSE
// (GET /sse, POST /message) or a connection.
type legacyServer struct {
	t         *testing.T
	listening chan struct{} // receives when what tells of changes was opened; never full
	inOrder   bool          // asks one thing at a time: answers would come in a random order

	mu       sync.Mutex // guards the fields below, and is held for writing on listeners
	sessions int
	asks     int
	events   int
	waiting  map[string]chan struct{} // by the id of our request, or of theirs that may be cancelled
	listener map[*listener]bool
}

// A listener is what carries messages that answer nothing.
type listener struct {
	say  func(string)
	done context.CancelFunc
}

func newLegacyServer(t *testing.T) *legacyServer {
	return &legacyServer{t: t, listening: make(chan struct{}, 64), waiting: make(map[string]chan struct{}), listener: make(map[*listener]bool)}
}

const (
	legacyWelcome = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{}},"serverInfo":{"name":"scripted-server","version":"1"},"instructions":"call work"}`
	scriptedTools = `"tools":[{"name":"work","description":"works","inputSchema":{"type":"object"}},{"name":"ask","inputSchema":{"type":"object","properties":{"deep":{"type":"boolean"}}}}]`
	elicitName    = `{"mode":"form","message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}`
	elicitAge     = `{"mode":"form","message":"How old are you?","requestedSchema":{"type":"object","properties":{"age":{"type":"integer"}}}}`
	noSuchMethod  = `{"code":-32601,"message":"no such method"}`
	noSuchTool    = `{"code":-32602,"message":"no such tool"}`
	noSuchNote    = `{"code":-32602,"message":"no such note"}`
)

// answer is the response to a request.
func answer(to frame, member, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%q:%s}`, to.ID, member, text)
}

// serve answers a request, or returns nothing where there is no answer. say sends
// messages that belong to it.
func (s *legacyServer) serve(ctx context.Context, f frame, say func(string)) string {
	switch f.Method {
	case "initialize":
		return answer(f, "result", legacyWelcome)
	case "tools/list":
		return answer(f, "result", `{`+scriptedTools+`}`)
	case "tools/call":
		return s.call(ctx, f, say)
	case "resources/subscribe":
		if f.Params.URI == "note://refused" {
			return answer(f, "error", noSuchNote)
		}
		return answer(f, "result", `{}`)
	case "resources/unsubscribe", "logging/setLevel", "ping":
		return answer(f, "result", `{}`)
	}
	return answer(f, "error", noSuchMethod)
}

func (s *legacyServer) call(ctx context.Context, f frame, say func(string)) string {
	text := f.Params.Name
	switch f.Params.Name {
	case "echo":
	case "work":
		work(f, say)
	case "ask":
		name := s.ask(say, "elicitation/create", elicitName)
		if s.inOrder {
			<-name
		}
		roots := s.ask(say, "roots/list", `{}`)
		<-name
		<-roots
		<-s.ask(say, "elicitation/create", elicitAge)
	case "slow":
		time.Sleep(slowness)
	case "late":
		time.Sleep(lateness)
	case "hang":
		s.await(ctx, string(f.ID))
		return ""
	case "fail":
		return answer(f, "result", `{"content":[{"type":"text","text":"it failed"}],"isError":true}`)
	default:
		return answer(f, "error", noSuchTool)
	}
	return answer(f, "result", `{"content":[{"type":"text","text":"`+text+` done"}],"structuredContent":{"n":1.0}}`)
}

// work tells of its progress.
func work(f frame, say func(string)) {
	if f.Params.Meta.ProgressToken == nil {
		return
	}
	for n := 1; n <= 2; n++ {
		say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":2,"message":"step %d"}}`, f.Params.Meta.ProgressToken, n, n))
		time.Sleep(thinking)
	}
}

// ask sends a request, after a while, and returns what is closed when it was answered.
func (s *legacyServer) ask(say func(string), method, params string) <-chan struct{} {
	time.Sleep(thinking)
	s.mu.Lock()
	s.asks++
	id := fmt.Sprintf(`"question-%d"`, s.asks)
	answered := make(chan struct{})
	s.waiting[id] = answered
	s.mu.Unlock()
	say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return answered
}

// await returns when the request of that id is cancelled, or ctx ends.
func (s *legacyServer) await(ctx context.Context, id string) {
	s.mu.Lock()
	cancelled := make(chan struct{})
	s.waiting[id] = cancelled
	s.mu.Unlock()
	select {
	case <-cancelled:
	case <-ctx.Done():
	}
}

// receive takes what is no request.
func (s *legacyServer) receive(f frame) {
	id := string(f.ID)
	if f.Method == "notifications/cancelled" {
		id = string(f.Params.RequestID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.waiting[id]; c != nil && (f.Method == "" || f.Method == "notifications/cancelled") {
		close(c)
		delete(s.waiting, id)
	}
}

// ServeHTTP implements [http.Handler].
func (s *legacyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(thinking)
	body, _ := io.ReadAll(r.Body) // read by the recorder
	f := parseFrame(body)
	switch {
	case r.Method == http.MethodGet:
		s.serveStream(w, r)
	case r.Method == http.MethodDelete:
	case r.URL.Path == "/message":
		w.WriteHeader(http.StatusAccepted)
		s.post(f)
	case f.Method == "" || f.ID == nil:
		s.receive(f)
		w.WriteHeader(http.StatusAccepted)
	case f.Method == "server/discover" || f.Method != "initialize" && r.Header.Get("Mcp-Session-Id") == "":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`)
	default:
		s.serveRequest(w, r, f)
	}
}

// serveRequest answers with an event stream if there is something to say before.
func (s *legacyServer) serveRequest(w http.ResponseWriter, r *http.Request, f frame) {
	if f.Method == "initialize" {
		s.mu.Lock()
		s.sessions++
		w.Header().Set("Mcp-Session-Id", fmt.Sprintf("server-session-%d", s.sessions))
		s.mu.Unlock()
	}
	out := &httpReply{w: w}
	if f.Params.Name == "hang" {
		out.stream()
	}
	out.finish(s.serve(r.Context(), f, out.say))
}

// An httpReply is the response to a request: JSON, or an event stream once something is said.
type httpReply struct {
	w       http.ResponseWriter
	streams bool
}

func (o *httpReply) stream() {
	if !o.streams {
		o.streams = true
		o.w.Header().Set("Content-Type", "text/event-stream")
		o.w.(http.Flusher).Flush()
	}
}

func (o *httpReply) say(text string) {
	o.stream()
	fmt.Fprintf(o.w, "data: %s\n\n", text)
	o.w.(http.Flusher).Flush()
}

func (o *httpReply) finish(text string) {
	switch {
	case text == "":
	case o.streams:
		o.say(text)
	default:
		o.w.Header().Set("Content-Type", "application/json")
		io.WriteString(o.w, text)
	}
}

// serveStream serves a stream for what answers nothing. Over HTTP+SSE that is all there
// is.
func (s *legacyServer) serveStream(w http.ResponseWriter, r *http.Request) {
	ctx, done := context.WithCancel(r.Context())
	defer done()
	out := &httpReply{w: w}
	out.stream()
	l := &listener{done: done}
	l.say = func(text string) {
		s.events++
		fmt.Fprintf(w, "id: server-event-%d\n", s.events)
		out.say(text)
	}
	if r.URL.Path == "/sse" {
		fmt.Fprint(w, "event: endpoint\n")
		out.say("/message")
		l.say = func(text string) {
			fmt.Fprint(w, "event: message\n")
			out.say(text)
		}
	}
	s.listen(l)
	<-ctx.Done()
	s.forget(l)
}

func (s *legacyServer) listen(l *listener) {
	s.mu.Lock()
	s.listener[l] = true
	s.mu.Unlock()
	s.listening <- struct{}{}
}

func (s *legacyServer) forget(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listener, l)
}

// post takes a message whose answer goes to the listeners.
func (s *legacyServer) post(f frame) {
	if f.Method == "" || f.ID == nil {
		s.receive(f)
		return
	}
	go func() { // ends with the answer, or the test
		time.Sleep(thinking)
		if text := s.serve(s.t.Context(), f, s.tell); text != "" {
			s.tell(text)
		}
	}()
}

// tell says something to all listeners.
func (s *legacyServer) tell(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listener {
		l.say(text)
	}
}

// serveConn implements scriptedServer.
func (s *legacyServer) serveConn(conn transport.Conn) {
	s.inOrder = true
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := &listener{done: cancel, say: func(text string) { _ = conn.Write([]byte(text)) }} // nobody reads if it fails
	s.listen(l)
	defer s.forget(l)
	serveConn(ctx, conn, l.say, s)
	_ = conn.Close()
}

// An answerer is what both scripted servers have in common.
type answerer interface {
	serve(ctx context.Context, f frame, say func(string)) string
	receive(f frame)
}

// serveConn serves requests of a connection, each beside the others, until it ends.
func serveConn(ctx context.Context, conn transport.Conn, say func(string), s answerer) {
	for {
		text, err := conn.Read()
		if err != nil {
			return
		}
		f := parseFrame(bytes.Clone(text))
		if f.Method == "" || f.ID == nil {
			s.receive(f)
			continue
		}
		go func() { // ends with the answer, or ctx
			time.Sleep(thinking)
			if text := s.serve(ctx, f, say); text != "" {
				say(text)
			}
		}()
	}
}

// change implements scriptedServer.
func (s *legacyServer) change(uri string) {
	s.tell(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%q}}`, uri))
}

// changeList implements scriptedServer.
func (s *legacyServer) changeList() {
	s.tell(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
}

// cut implements scriptedServer.
func (s *legacyServer) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listener {
		l.done()
	}
}

// expectListener implements scriptedServer.
func (s *legacyServer) expectListener() { expectListener(s.listening) }

// awaitListener implements scriptedServer.
func (s *legacyServer) awaitListener() { awaitListener(s.t, s.listening) }

func expectListener(listening chan struct{}) {
	for len(listening) > 0 {
		<-listening
	}
}

func awaitListener(t *testing.T, listening chan struct{}) {
	select {
	case <-listening:
	case <-time.After(patient):
		t.Error("nobody listens to changes any more")
	}
}
