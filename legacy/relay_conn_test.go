package legacy

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// welcomed opens a session over a connection on either side.
func welcomed(t *testing.T, st *theatre, peers <-chan *connPeer) (*lineClient, *connPeer) {
	l := pipeTo(t, st)
	l.serve(oddHello)
	p := <-peers
	p.result(p.want("initialize").ID, oddWelcome)
	<-l.sent
	return l, p
}

// A server that has ended is said to have, whoever notices first.
func TestS02DeadServer(t *testing.T) {
	b, peers := pipeBack(t, Options{})
	st := linkedTo(t, b)
	for range 20 {
		l, p := welcomed(t, st, peers)
		_ = p.conn.Close()
		l.serve(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		if got := <-l.sent; !strings.Contains(got, "-32001") || strings.Contains(got, exchange.ErrShutdown.Error()) {
			t.Errorf("ping = %s, want an error about the server", got)
		}
	}
}

// Each call under which the server dies is answered, once.
func TestS02DeathAnswersEachOnce(t *testing.T) {
	b, peers := pipeBack(t, Options{})
	l, p := welcomed(t, linkedTo(t, b), peers)
	go func() {
		for range 10 {
			p.want("tools/call")
		}
		_ = p.conn.Close()
	}()
	for n := range 10 {
		l.serve(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{}}`, n))
	}
	seen := map[wire.ID]bool{}
	for range 10 {
		text := <-l.sent
		m, err := wire.Parse([]byte(text), wire.Options{})
		if err != nil || m.Error == nil || seen[m.ID] {
			t.Errorf("sent %s, want an error for each call, once", text)
		}
		seen[m.ID] = true
	}
	<-l.pipe.Lost()
	l.pipe.Close()
	if len(l.sent) > 0 {
		t.Errorf("sent %s, want no more", <-l.sent)
	}
}

// A question for which no GET stream is open goes to a call whose client is there, not
// to one whose client has left.
func TestS02QuestionGoesWhereItIsHeard(t *testing.T) {
	b, peers := pipeBack(t, Options{})
	st := linkedTo(t, b)
	asks := make(chan struct{})
	go func() {
		p := <-peers
		p.handshake(everything)
		m := p.want("tools/call")
		p.want("tools/call")
		<-asks
		p.write(`{"jsonrpc":"2.0","id":0,"method":"roots/list"}`)
		answer := p.read()
		p.write(`{"jsonrpc":"2.0","id":%s,"result":{"said":%s}}`, m.ID, answer.Result)
	}()
	g := st.enter(t, "2025-06-18")
	d := st.only(t)
	got := make(chan httpReply, 1)
	go func() { got <- g.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`) }()
	first := st.inFlight(t, d, 1)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, st.URL, strings.NewReader(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}`))
		if err != nil {
			t.Error(err)
			return
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Session-Id": {g.id}}
		_, _ = st.Client().Do(req) // which is cut off
	}()
	second := st.inFlight(t, d, 2)
	leave()
	<-left
	eventually(t, "it is known to have left", func() bool { return second.hearing() == unheard && first.hearing() == heard })
	close(asks)
	eventually(t, "asked", func() bool { first.mu.Lock(); defer first.mu.Unlock(); return first.stream != nil })
	g.post(t, `{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
	r := <-got
	for _, want := range []string{`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`, `{"jsonrpc":"2.0","id":1,"result":{"said":{"roots":[]}}}`} {
		if !strings.Contains(r.body, want) {
			t.Errorf("call = %s, want %s in it", r.body, want)
		}
	}
}

// inFlight waits for the client's call with an id, and returns its way back.
func (st *theatre) inFlight(t *testing.T, d *downstream, id int64) (p *post) {
	t.Helper()
	eventually(t, "called", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		c := d.calls[wire.NumberID(id)]
		if c != nil {
			p = c.out.(*post)
		}
		return c != nil
	})
	return p
}
