package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A modernServer is a server of 2026-07-28, at the wire: over Streamable HTTP or a
// connection.
type modernServer struct {
	t         *testing.T
	listening chan struct{} // receives when what tells of changes was opened; never full

	// Of several lists that have changed in a gap, which is told first is random, and
	// whether what listens to changes on a connection is cancelled before that is closed.
	capabilities string

	mu        sync.Mutex // guards the fields below, and is held for writing on listeners
	cancelled map[string]context.CancelFunc
	listener  map[*listener]string // and the id of its request
}

func newModernServer(t *testing.T) *modernServer {
	return &modernServer{t: t, capabilities: `{"tools":{"listChanged":true},"resources":{"subscribe":true}}`, listening: make(chan struct{}, 64), cancelled: make(map[string]context.CancelFunc), listener: make(map[*listener]string)}
}

const (
	modernWelcome   = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":%s,"serverInfo":{"name":"scripted-server","version":"1"},"instructions":"call work","ttlMs":60000,"cacheScope":"public"}`
	wantsEnvelope   = `{"code":-32602,"message":"no envelope"}`
	firstQuestions  = `{"resultType":"input_required","inputRequests":{"name":{"method":"elicitation/create","params":` + elicitName + `},"roots":{"method":"roots/list"}},"requestState":"server-state-1"}`
	secondQuestions = `{"resultType":"input_required","inputRequests":{"age":{"method":"elicitation/create","params":` + elicitAge + `}},"requestState":"server-state-2"}`
)

// serve answers a request, or returns nothing where there is no answer. say sends
// messages that belong to it.
func (s *modernServer) serve(ctx context.Context, f frame, say func(string)) string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.cancelled[string(f.ID)] = cancel
	s.mu.Unlock()
	switch f.Method {
	case "server/discover":
		return answer(f, "result", fmt.Sprintf(modernWelcome, s.capabilities))
	case "tools/list":
		return answer(f, "result", `{"resultType":"complete",`+scriptedTools+`,"ttlMs":60000,"cacheScope":"private"}`)
	case "tools/call":
		return s.call(ctx, f, say)
	case "subscriptions/listen":
		return s.serveListener(ctx, f, say)
	}
	return answer(f, "error", noSuchMethod)
}

func (s *modernServer) call(ctx context.Context, f frame, say func(string)) string {
	switch f.Params.Name {
	case "echo":
	case "work":
		work(f, say)
	case "ask":
		switch f.Params.RequestState {
		case "":
			return answer(f, "result", firstQuestions)
		case "server-state-1":
			return answer(f, "result", secondQuestions)
		}
	case "slow":
		time.Sleep(slowness)
	case "late":
		time.Sleep(lateness)
	case "hang":
		<-ctx.Done()
		return ""
	case "fail":
		return answer(f, "result", `{"resultType":"complete","content":[{"type":"text","text":"it failed"}],"isError":true}`)
	default:
		return answer(f, "error", noSuchTool)
	}
	return answer(f, "result", `{"resultType":"complete","content":[{"type":"text","text":"`+f.Params.Name+` done"}],"structuredContent":{"n":1.0}}`)
}

// receive takes what is no request.
func (s *modernServer) receive(f frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.cancelled[string(f.Params.RequestID)]; cancel != nil && f.Method == "notifications/cancelled" {
		cancel()
	}
}

// serveListener grants what is wanted, and tells of it until it is cut or cancelled.
func (s *modernServer) serveListener(ctx context.Context, f frame, say func(string)) string {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	l := &listener{say: say, done: cut}
	s.mu.Lock()
	say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":%s}}`, f.ID, f.Params.Notifications))
	s.listener[l] = string(f.ID)
	s.mu.Unlock()
	s.listening <- struct{}{}
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listener, l)
	return ""
}

// tell says something to all listeners. members are those of params after _meta.
func (s *modernServer) tell(method, members string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l, id := range s.listener {
		l.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}%s}}`, method, id, members))
	}
}

// ServeHTTP implements [http.Handler].
func (s *modernServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(thinking)
	body, _ := io.ReadAll(r.Body) // read by the recorder
	f := parseFrame(body)
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "POST")
		w.WriteHeader(http.StatusMethodNotAllowed)
	case f.Method == "" || f.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case r.Header.Get("Mcp-Method") != f.Method:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, answer(f, "error", wantsEnvelope))
	default:
		out := &httpReply{w: w}
		if f.Params.Name == "hang" {
			out.stream()
		}
		out.finish(s.serve(r.Context(), f, out.say))
	}
}

// serveConn implements scriptedServer.
func (s *modernServer) serveConn(conn transport.Conn) {
	s.capabilities = `{"tools":{},"resources":{}}`
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	serveConn(ctx, conn, func(text string) { _ = conn.Write([]byte(text)) }, s) // nobody reads if it fails
	_ = conn.Close()
}

// change implements scriptedServer.
func (s *modernServer) change(uri string) {
	s.tell("notifications/resources/updated", fmt.Sprintf(`,"uri":%q`, uri))
}

// changeList implements scriptedServer.
func (s *modernServer) changeList() { s.tell("notifications/tools/list_changed", "") }

// cut implements scriptedServer.
func (s *modernServer) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listener {
		l.done()
	}
}

// expectListener implements scriptedServer.
func (s *modernServer) expectListener() { expectListener(s.listening) }

// awaitListener implements scriptedServer.
func (s *modernServer) awaitListener() { awaitListener(s.t, s.listening) }
