package legacy

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Over HTTP+SSE a server may answer a POST only when it has run what was posted: what
// it asks meanwhile is asked and answered, and other calls pass it, on a connection of
// the client's that has one reader. A POST that it refuses fails its call alone.
func TestS02HTTPSSEPostsThatWait(t *testing.T) {
	p := newEventPeer(t)
	answered := make(chan string, 1)
	t.Cleanup(func() { close(answered) }) // the peer's Close waits for its POSTs
	p.on["tools/call"] = func(s *peerStream, m wire.Message) string {
		s.write(`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}`)
		return string(wire.AppendResult(nil, m.ID, []byte(`{"said":`+<-answered+`}`), nil))
	}
	p.on["ping"] = func(_ *peerStream, m wire.Message) string {
		return string(wire.AppendResult(nil, m.ID, []byte(`{}`), nil))
	}
	p.post = func(w http.ResponseWriter, m wire.Message) bool {
		if m.Kind() == wire.Response {
			answered <- string(m.Result)
		}
		if m.Method == "prompts/list" {
			http.Error(w, "no", http.StatusInternalServerError)
		}
		return m.Method == "prompts/list"
	}
	st := linkedTo(t, newTestBack(t, Options{URL: p.URL + "/sse", Transport: TransportSSE}))
	sent := make(chan string, 8)
	pipe := st.front.OpenPipe(func(msg []byte) error { sent <- string(msg); return nil }, "ada")
	t.Cleanup(pipe.Close)
	serve := func(text string) {
		m, err := wire.Parse([]byte(text), wire.Options{})
		if err != nil {
			t.Fatal(err)
		}
		pipe.Serve(&m)
	}
	want := func(parts ...string) {
		t.Helper()
		select {
		case got := <-sent:
			for _, part := range parts {
				if !strings.Contains(got, part) {
					t.Errorf("sent %s, want %s in it", got, part)
				}
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("nothing sent, want %s", parts)
		}
	}
	serve(oddHello)
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
