package relay_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/back"
	"github.com/mcpbridge/mcpbridge/legacy/front"
)

func TestS02Cancellation(t *testing.T) {
	t.Parallel()
	b, peers := pipeBack(t, back.Options{})
	st := linkedTo(t, b)
	called, cancelled := make(chan struct{}, 2), make(chan string, 2)
	go func() {
		p := <-peers
		p.Handshake(legacytest.Everything)
		for _, answered := range []bool{true, false} {
			m := p.Want("tools/call")
			called <- struct{}{}
			c := p.Want("notifications/cancelled")
			cancelled <- strings.ReplaceAll(string(c.Text), `"requestId":`+m.ID.String(), `"requestId":THAT`)
			if answered {
				p.Write(`{"jsonrpc":"2.0","id":%s,"result":{"isError":true}}`, m.ID)
			}
		}
	}()
	g := st.Enter(t, "2025-06-18")
	for _, c := range []struct{ name, answer string }{
		{"answered all the same", `{"jsonrpc":"2.0","id":"c","result":{"isError":true}}`},
		{"not answered", ""}, // but ended
	} {
		t.Run("S-02 "+c.name, func(t *testing.T) {
			got := make(chan legacytest.Reply, 1)
			go func() { got <- g.Post(t, `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{}}`) }()
			<-called
			if r := g.Post(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c","reason":"bored","x":1}}`); r.Status != 202 {
				t.Errorf("cancellation = %d %s", r.Status, r.Body)
			}
			if text := <-cancelled; text != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":THAT,"reason":"bored","x":1}}` {
				t.Errorf("the server got %s", text)
			}
			r := <-got
			answer := r.Body[max(0, strings.Index(r.Body, "{")):] // a stream by now, maybe
			if c.answer != answer && (c.answer != "" || strings.Contains(r.Body, "jsonrpc")) {
				t.Errorf("call = %d %q, want %q", r.Status, r.Body, c.answer)
			}
		})
	}
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
	const calls = 40
	order := make(chan bool, calls)
	p.On["notifications/cancelled"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		_, ok := came.Load(string(wire.Get(m.Params, "requestId")))
		order <- ok
		w.WriteHeader(http.StatusAccepted)
	}
	l := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL}})).line(t)
	l.Send(legacytest.OddInitialize)
	l.Next()
	// A call that waits for the end of the handshake is cancelled without the server.
	bridgetest.Eventually(t, "the handshake is over", func() bool { return !l.Pipe.(*front.Conn).Busy() })
	l.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for n := range calls {
		l.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{}}`, n))
		l.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, n))
	}
	for range calls {
		if !<-order {
			t.Error("a cancellation came before its call")
		}
	}
}
