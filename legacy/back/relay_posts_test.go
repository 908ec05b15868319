package back

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/front"
)

// Over HTTP+SSE a server may answer a POST only when it has run what was posted: what
// it asks meanwhile is asked and answered, and other calls pass it, on a connection of
// the client's that has one reader. A POST that it refuses fails its call alone.
func TestS02HTTPSSEPostsThatWait(t *testing.T) {
	p := legacytest.NewEventServer(t)
	answered := make(chan string, 1)
	t.Cleanup(func() { close(answered) }) // the peer's Close waits for its POSTs
	p.On["tools/call"] = func(s *legacytest.EventStream, m wire.Message) string {
		s.Write(`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}`)
		return string(wire.AppendResult(nil, m.ID, []byte(`{"said":`+<-answered+`}`), nil))
	}
	p.On["ping"] = func(_ *legacytest.EventStream, m wire.Message) string {
		return string(wire.AppendResult(nil, m.ID, []byte(`{}`), nil))
	}
	p.Post = func(w http.ResponseWriter, m wire.Message) bool {
		if m.Kind() == wire.Response {
			answered <- string(m.Result)
		}
		if m.Method == "prompts/list" {
			http.Error(w, "no", http.StatusInternalServerError)
		}
		return m.Method == "prompts/list"
	}
	st := linkedTo(t, newTestBack(t, Options{Options: upstream.Options{URL: p.URL + "/sse"}, Transport: TransportSSE}))
	sent := make(chan string, 8)
	pipe := st.front.OpenConn(func(msg []byte) error { sent <- string(msg); return nil }, mcp.Share{Principal: "ada"})
	t.Cleanup(pipe.Close)
	serve := legacytest.Sender(t, pipe)
	want := func(parts ...string) {
		t.Helper()
		select {
		case got := <-sent:
			for _, part := range parts {
				if !strings.Contains(got, part) {
					t.Errorf("sent %s, want %s in it", got, part)
				}
			}
		case <-time.After(bridgetest.Patience):
			t.Fatalf("nothing sent, want %s", parts)
		}
	}
	serve(legacytest.OddInitialize)
	want(`"id":"h","result":`)
	done := make(chan struct{})
	go func() { // one reader, as of a WebSocket
		defer close(done)
		serve(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`)
		serve(`{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`)
	}()
	t.Cleanup(func() { pipe.Close(); <-done })
	for range 2 { // the question and the refusal, in any order
		want(`"jsonrpc"`)
	}
	<-done
	serve(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	want(`"id":3,"result":{}`)
	serve(`{"jsonrpc":"2.0","id":1,"result":{"text":"hi"}}`)
	want(`"id":1,"result":{"said":{"text":"hi"}}`)
	select {
	case <-pipe.Lost():
		t.Error("a POST that was refused has ended the session")
	default:
	}
}

// A server may answer the POST of a notification only when it has heard of it what it
// wants to, from the client: whose other messages pass meanwhile.
func TestS02NotificationsThatWait(t *testing.T) {
	for _, method := range []string{"notifications/initialized", "notifications/roots/list_changed"} {
		t.Run("S-02 "+method, func(t *testing.T) {
			p := legacytest.NewHTTPServer(t)
			answers, answered := make(chan string, 1), make(chan struct{})
			ask := make(chan struct{}, 1)
			p.Get = func(w http.ResponseWriter, r *http.Request) {
				event := legacytest.StartSSE(w)
				select {
				case <-ask:
					event(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
					<-r.Context().Done()
				case <-r.Context().Done():
				}
			}
			p.On[method] = func(w http.ResponseWriter, r *http.Request, _ wire.Message) {
				ask <- struct{}{}
				select {
				case <-answered:
					w.WriteHeader(http.StatusAccepted)
				case <-r.Context().Done():
				}
			}
			p.On[""] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
				answers <- string(m.Text)
				close(answered)
				w.WriteHeader(http.StatusAccepted)
			}
			l := pipeTo(t, linkedTo(t, newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})))
			l.serve(legacytest.OddInitialize)
			<-l.sent
			begun := time.Now()
			l.serve(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			l.serve(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
			if got, want := <-l.sent, `{"jsonrpc":"2.0","id":1,"method":"roots/list"}`; got != want {
				t.Errorf("the client got %s, want %s", got, want)
			}
			l.serve(`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
			if got, want := <-answers, `{"jsonrpc":"2.0","id":"q","result":{"roots":[]}}`; got != want {
				t.Errorf("the server got %s, want %s", got, want)
			}
			if took := time.Since(begun); took > upstream.DefaultConnectTimeout/2 {
				t.Errorf("it took %v", took)
			}
			if got := p.Order(); !strings.Contains(got, "GET notifications/initialized notifications/roots/list_changed") {
				t.Errorf("the server got %s, want the client's order", got)
			}
		})
	}
}

// A lineClient is a client on a connection whose far end is a Pipe.
type lineClient struct {
	t    *testing.T
	pipe *front.Conn
	sent chan string // to the client
}

func pipeTo(t *testing.T, st *linkedFront) *lineClient {
	l := &lineClient{t: t, sent: make(chan string, 64)}
	l.pipe = st.front.OpenConn(func(msg []byte) error { l.sent <- string(msg); return nil }, mcp.Share{Principal: "ada"})
	t.Cleanup(l.pipe.Close)
	return l
}

func (l *lineClient) serve(text string) {
	l.t.Helper()
	m, err := wire.Parse([]byte(text), wire.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	l.pipe.Serve(&m)
}

// A cancellation right behind its call does not overtake it: the server would not know
// what is cancelled, and run it.
func TestS02CancellationFollowsItsCall(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	var came sync.Map // requests, by id
	p.On["tools/call"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		came.Store(m.ID.String(), true)
		legacytest.StartSSE(w)
		<-r.Context().Done()
	}
	p.On["ping"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { legacytest.AnswerJSON(w, m.ID, `{}`) }
	const calls = 40
	order := make(chan bool, calls)
	p.On["notifications/cancelled"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		_, ok := came.Load(string(wire.Get(m.Params, "requestId")))
		order <- ok
		w.WriteHeader(http.StatusAccepted)
	}
	l := pipeTo(t, linkedTo(t, newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})))
	l.serve(legacytest.OddInitialize)
	<-l.sent
	for range 2 { // a call that waits for the end of the handshake is cancelled without the server
		l.serve(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
		<-l.sent
	}
	l.serve(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for n := range calls {
		l.serve(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{}}`, n))
		l.serve(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, n))
	}
	for range calls {
		if !<-order {
			t.Error("a cancellation came before its call")
		}
	}
}
