package legacy

import (
	"strings"
	"sync"
	"testing"
)

// A server that dies leaves no call without a word: a call whose answer has become a
// stream hears on it that the session is gone, before the stream ends.
func TestS02LostUnderStreams(t *testing.T) {
	for range 30 {
		b, peers := pipeBack(t, Options{})
		st := linkedTo(t, b)
		peer := make(chan *connPeer, 1)
		go func() {
			p := <-peers
			p.handshake(everything)
			for range 3 {
				m := p.want("tools/call")
				p.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, m.ID)
			}
			peer <- p
		}()
		g := st.enter(t, "2025-11-25")
		var feeds []*feedReader
		for n := range 3 {
			f := read(t, st.open(t, "POST", strings.ReplaceAll(`{"jsonrpc":"2.0","id":N,"method":"tools/call","params":{"_meta":{"progressToken":N}}}`, "N", string(rune('2'+n))), "Mcp-Session-Id", g.id))
			f.next()
			feeds = append(feeds, f)
		}
		_ = (<-peer).conn.Close()
		var wg sync.WaitGroup
		for _, f := range feeds {
			wg.Go(func() {
				if got, ok := f.next(); !ok || !strings.Contains(got, "-32001") {
					t.Errorf("event after the loss = %q, %v; want an error", got, ok)
				}
				f.res.Body.Close()
			})
		}
		wg.Wait()
	}
}

// A request that finds its session, and then that it is about to end, hears 404 as the
// next one would: clients heed nothing else.
func TestS02RequestMeetsTheEnd(t *testing.T) {
	b, peers := pipeBack(t, Options{})
	st := linkedTo(t, b)
	go func() { (<-peers).handshake(everything) }()
	g := st.enter(t, "2025-11-25")
	d := st.only(t)
	d.mu.Lock()
	d.calls = nil // as close does first
	d.mu.Unlock()
	if r := g.call(t, "ping", `{}`); r.status != 404 || r.code() != -32001 {
		t.Errorf("ping = %d %s, want 404", r.status, r.body)
	}
}
