package relay_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/back"
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
	backs := map[string]func(t *testing.T) *back.Back{
		"connection":      connSpeakingEarly,
		"Streamable HTTP": httpSpeakingEarly,
		"HTTP+SSE":        eventsSpeakingEarly,
	}
	for name, open := range backs {
		t.Run(name+" to pipe", func(t *testing.T) {
			l := linkedTo(t, open(t)).line(t)
			l.Send(legacytest.OddInitialize)
			l.Want(`{"jsonrpc":"2.0","id":"h","result":`)
			l.Want(afterAnswer...)
		})
		t.Run(name+" to Streamable HTTP", func(t *testing.T) {
			g := linkedTo(t, open(t)).Enter(t, "2025-06-18")
			get := g.Listen(t)
			for _, want := range afterAnswer {
				get.Want(want)
			}
			get.Response.Body.Close()
		})
	}
}

func connSpeakingEarly(t *testing.T) *back.Back {
	b, peers := pipeBack(t, back.Options{})
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

func httpSpeakingEarly(t *testing.T) *back.Back {
	p := legacytest.NewHTTPServer(t)
	p.On["initialize"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		w.Header().Set("Mcp-Session-Id", "up")
		event := legacytest.StartSSE(w)
		for _, text := range earlyWords {
			event("%s", text)
		}
		event(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, legacytest.OddResult)
	}
	return newBack(t, back.Options{Options: upstream.Options{URL: p.URL}})
}

func eventsSpeakingEarly(t *testing.T) *back.Back {
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
	return newBack(t, back.Options{Options: upstream.Options{URL: p.URL + "/sse"}, Transport: back.TransportSSE})
}

// A server that says too much before it answers loses the rest, and a request among it
// is answered.
func TestS02SoMuchBeforeTheAnswer(t *testing.T) {
	b, peers := pipeBack(t, back.Options{})
	l := linkedTo(t, b).line(t)
	l.Send(legacytest.OddInitialize)
	p := <-peers
	hello := p.Want("initialize")
	for range mcp.MaxEarly {
		p.Write(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	}
	p.Write(`{"jsonrpc":"2.0","id":"late","method":"roots/list"}`)
	if m := p.Read(); m.ID.String() != `"late"` || m.Error == nil {
		t.Errorf("a question beyond the limit = %s, want an error", m.Text)
	}
	p.Result(hello.ID, legacytest.OddResult)
	l.Want(`{"jsonrpc":"2.0","id":"h","result":`)
	for range mcp.MaxEarly {
		if got, want := l.Next(), `{"jsonrpc":"2.0","method":"notifications/x"}`; got != want {
			t.Fatalf("the client got %s, want %s", got, want)
		}
	}
}
