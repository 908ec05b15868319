package back

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// What servers send before they answer initialize: changes, a question, and its
// withdrawal.
var earlyWords = []string{
	`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
	`{"jsonrpc":"2.0","id":"a","method":"roots/list"}`,
	`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1.0}}`,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`,
}

// afterAnswer is what the client gets of them.
var afterAnswer = []string{
	earlyWords[0],
	`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`,
	earlyWords[2],
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
}

// Nothing of a server reaches its client before the answer to initialize has, over
// whatever it comes; then everything does, in order.
func TestS02NothingBeforeTheAnswer(t *testing.T) {
	backs := map[string]func(t *testing.T) *Back{
		"connection":      connSpeakingEarly,
		"Streamable HTTP": httpSpeakingEarly,
		"HTTP+SSE":        eventsSpeakingEarly,
	}
	for name, back := range backs {
		t.Run(name+" to pipe", func(t *testing.T) {
			sent := make(chan string, 32)
			pipe := linkedTo(t, back(t)).front.OpenConn(func(msg []byte) error { sent <- string(msg); return nil }, mcp.Share{Principal: "ada"})
			t.Cleanup(pipe.Close)
			legacytest.Sender(t, pipe)(legacytest.OddInitialize)
			for _, want := range append([]string{`{"jsonrpc":"2.0","id":"h","result":`}, afterAnswer...) {
				if got := <-sent; !strings.HasPrefix(got, want) {
					t.Errorf("the client got %s\nwant %s", got, want)
				}
			}
		})
		t.Run(name+" to Streamable HTTP", func(t *testing.T) {
			g := linkedTo(t, back(t)).Enter(t, "2025-06-18")
			get := g.Listen(t)
			for _, want := range afterAnswer {
				get.Want(want)
			}
			get.Response.Body.Close()
		})
	}
}

func connSpeakingEarly(t *testing.T) *Back {
	b, peers := pipeBack(t, Options{})
	go func() { // ends with the handshake
		p, ok := <-peers
		if !ok {
			return
		}
		m := p.Want("initialize")
		p.Write(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
		if pong := p.Read(); pong.ID.String() != `"p"` || pong.Result == nil {
			t.Errorf("a ping before the answer = %s, want its result", pong.Text)
		}
		for _, text := range earlyWords {
			p.Write("%s", text)
		}
		p.Result(m.ID, legacytest.OddResult)
	}()
	return b
}

func httpSpeakingEarly(t *testing.T) *Back {
	p := legacytest.NewHTTPServer(t)
	p.On["initialize"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		w.Header().Set("Mcp-Session-Id", "up")
		event := legacytest.StartSSE(w)
		for _, text := range earlyWords {
			event("%s", text)
		}
		event(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, legacytest.OddResult)
	}
	return newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
}

func eventsSpeakingEarly(t *testing.T) *Back {
	p := legacytest.NewEventServer(t)
	p.Post = func(w http.ResponseWriter, m wire.Message) bool {
		if m.Method != spec.MethodInitialize {
			return false
		}
		s := p.LastStream()
		for _, text := range earlyWords {
			s.Write(text)
		}
		s.Write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, legacytest.OddResult))
		w.WriteHeader(http.StatusAccepted)
		return true
	}
	return newTestBack(t, Options{Options: upstream.Options{URL: p.URL + "/sse"}, Transport: TransportSSE})
}

// A server that says too much before it answers loses the rest, and a request among it
// is answered.
func TestS02SoMuchBeforeTheAnswer(t *testing.T) {
	b, peers := pipeBack(t, Options{})
	l := pipeTo(t, linkedTo(t, b))
	l.serve(legacytest.OddInitialize)
	p := <-peers
	hello := p.Want("initialize")
	for range maxHeldBack {
		p.Write(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	}
	p.Write(`{"jsonrpc":"2.0","id":"late","method":"roots/list"}`)
	if m := p.Read(); m.ID.String() != `"late"` || m.Error == nil {
		t.Errorf("a question beyond the limit = %s, want an error", m.Text)
	}
	p.Result(hello.ID, legacytest.OddResult)
	if got := <-l.sent; !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"h","result":`) {
		t.Errorf("the client got %s, want the answer to initialize", got)
	}
	for range maxHeldBack {
		if got, want := <-l.sent, `{"jsonrpc":"2.0","method":"notifications/x"}`; got != want {
			t.Fatalf("the client got %s, want %s", got, want)
		}
	}
}
