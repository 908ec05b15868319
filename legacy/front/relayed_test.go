package front

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/back"
)

// backWithPeers returns a Back over pipes, and the far end of each connection that it
// dials.
func backWithPeers(t *testing.T) (*back.Back, <-chan *legacytest.ConnPeer) {
	dial, peers := legacytest.Pipes(t) // closed after the Back is
	b, err := back.New(back.Options{Options: upstream.Options{Name: "scripted", ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return b, peers
}

// A question for which no GET stream is open goes to a call whose client is there, not
// to one whose client has left.
func TestS02QuestionGoesWhereItIsHeard(t *testing.T) {
	b, peers := backWithPeers(t)
	st := newRig(t, func(o *Options) { o.Relayer = b })
	asks := make(chan struct{})
	go func() {
		p := <-peers
		p.Handshake(legacytest.Everything)
		m := p.Want("tools/call")
		p.Want("tools/call")
		<-asks
		p.Write(`{"jsonrpc":"2.0","id":0,"method":"roots/list"}`)
		answer := p.Read()
		p.Write(`{"jsonrpc":"2.0","id":%s,"result":{"said":%s}}`, m.ID, answer.Result)
	}()
	g := st.Enter(t, "2025-06-18")
	d := st.only(t)
	got := make(chan legacytest.Reply, 1)
	go func() { got <- g.Post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`) }()
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
		req.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Session-Id": {g.ID}}
		_, _ = st.Client().Do(req) // which is cut off
	}()
	second := st.inFlight(t, d, 2)
	leave()
	<-left
	bridgetest.Eventually(t, "it is known to have left", func() bool { return second.reach() == unreachable && first.reach() == connected })
	close(asks)
	bridgetest.Eventually(t, "asked", func() bool { first.mu.Lock(); defer first.mu.Unlock(); return first.stream != nil })
	g.Post(t, `{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
	r := <-got
	for _, want := range []string{`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`, `{"jsonrpc":"2.0","id":1,"result":{"said":{"roots":[]}}}`} {
		if !strings.Contains(r.Body, want) {
			t.Errorf("call = %s, want %s in it", r.Body, want)
		}
	}
}

// inFlight waits for the client's call with an id, and returns its way back.
func (st *rig) inFlight(t *testing.T, d *session, id int64) (p *httpReply) {
	t.Helper()
	bridgetest.Eventually(t, "called", func() bool {
		r, ok := d.calls.Find(wire.NumberID(id))
		if ok {
			p = r.w.(*httpReply)
		}
		return ok
	})
	return p
}

// only returns the session of the only client.
func (st *rig) only(t *testing.T) *session {
	t.Helper()
	r := st.front.sessions
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.byID {
		return d
	}
	t.Fatal("there is no session")
	return nil
}

// A request that finds its session, and then that it is about to end, hears 404 as the
// next one would: clients heed nothing else.
func TestS02RequestMeetsTheEnd(t *testing.T) {
	b, peers := backWithPeers(t)
	st := newRig(t, func(o *Options) { o.Relayer = b })
	var met sync.WaitGroup
	met.Go(func() { (<-peers).Handshake(legacytest.Everything) })
	g := st.Enter(t, "2025-11-25")
	met.Wait()
	d := st.only(t)
	d.calls.Close() // as close does first
	if r := g.Call(t, "ping", `{}`); r.Status != 404 || r.Code() != -32001 {
		t.Errorf("ping = %d %s, want 404", r.Status, r.Body)
	}
}
