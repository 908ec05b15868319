package relay_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/back"
	"github.com/mcpbridge/mcpbridge/legacy/relay"
)

// An answer that did not reach the server is not answered for good: its client is told,
// and may send it again.
func TestS02AnswerSentAgain(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		legacytest.StartSSE(w)(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
		<-r.Context().Done()
	}
	var tries atomic.Int32
	got := make(chan string, 2)
	p.On[""] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		if tries.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		got <- string(m.Text)
		w.WriteHeader(http.StatusAccepted)
	}
	g := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL}})).Enter(t, "2025-11-25")
	get := g.Listen(t)
	get.Want(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
	for _, want := range []int{http.StatusBadGateway, http.StatusAccepted} {
		if r := g.Post(t, `{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`); r.Status != want {
			t.Errorf("answer = %d %s, want %d", r.Status, r.Body, want)
		}
	}
	if n := tries.Load(); n != 2 {
		t.Fatalf("the server was sent %d answers, want 2", n)
	}
	if text := <-got; text != `{"jsonrpc":"2.0","id":"q","result":{"roots":[]}}` {
		t.Errorf("the server got %s", text)
	}
	get.Response.Body.Close()
}

// Questions that nobody answers, keep-alive pings above all, don't keep others from
// being asked: the oldest give way, and the server is told.
func TestS02QuestionsThatNobodyAnswers(t *testing.T) {
	d := &backtest.Metrics{}
	b, peers := pipeBack(t, back.Options{Options: upstream.Options{Metrics: d}})
	st := linkedTo(t, b)
	refused := make(chan string, 2)
	go func() {
		p := <-peers
		p.Handshake(legacytest.Everything)
		for n := range relay.MaxInputs + 1 {
			p.Write(`{"jsonrpc":"2.0","id":"p%d","method":"ping"}`, n)
		}
		refused <- string(p.Read().Text)
		p.Result(p.Want("ping").ID, `{}`)
		m := p.Want("tools/call")
		p.Write(`{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{}}`)
		refused <- string(p.Read().Text)
		answer := p.Read()
		p.Write(`{"jsonrpc":"2.0","id":%s,"result":{"said":%s}}`, m.ID, answer.Result)
	}()
	g := st.Enter(t, "2025-06-18")
	if text := <-refused; !strings.Contains(text, `"id":"p0"`) || !strings.Contains(text, "limit") {
		t.Errorf("the server got %s, want an error for its oldest question", text)
	}
	if r := g.Post(t, `{"jsonrpc":"2.0","id":"p","method":"ping"}`); r.Code() != 0 { // behind which no question goes with the call to come
		t.Errorf("ping = %s, want its answer", r.Body)
	}
	f := legacytest.Read(t, st.Open(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, "Mcp-Session-Id", g.ID))
	f.Want(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage","params":{}}`, relay.MaxInputs+2))
	if text := <-refused; !strings.Contains(text, `"id":"p1"`) {
		t.Errorf("the server got %s, want an error for its oldest question", text)
	}
	g.Post(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"text":"hi"}}`, relay.MaxInputs+2))
	f.Want(`{"jsonrpc":"2.0","id":1,"result":{"said":{"text":"hi"}}}`)
	f.Ends()
	if n := d.Count("questions"); n != 2 {
		t.Errorf("%d questions counted as refused, want 2", n)
	}
}

// What is withdrawn of a question goes where the question went: a client without a GET
// stream would go on asking its user.
func TestS02WithdrawnWithoutGET(t *testing.T) {
	b, peers := pipeBack(t, back.Options{})
	st := linkedTo(t, b)
	go func() {
		p := <-peers
		p.Handshake(legacytest.Everything)
		m := p.Want("tools/call")
		p.Write(`{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{}}`)
		p.Write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"e","reason":"r"}}`)
		p.Result(m.ID, `{"content":[]}`)
	}()
	g := st.Enter(t, "2025-06-18")
	f := legacytest.Read(t, st.Open(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, "Mcp-Session-Id", g.ID))
	f.Want(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}`)
	f.Want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"r"}}`)
	f.Want(`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
	f.Ends()
}
