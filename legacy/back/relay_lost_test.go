package back

import (
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest/legacytest"
)

// A server that dies leaves no call without a word: a call whose answer has become a
// stream hears on it that the session is gone, before the stream ends.
func TestS02LostUnderStreams(t *testing.T) {
	for range 30 {
		b, peers := pipeBack(t, Options{})
		st := linkedTo(t, b)
		peer := make(chan *legacytest.ConnPeer, 1)
		go func() {
			p := <-peers
			p.Handshake(legacytest.Everything)
			for range 3 {
				m := p.Want("tools/call")
				p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, m.ID)
			}
			peer <- p
		}()
		g := st.Enter(t, "2025-11-25")
		var feeds []*legacytest.Stream
		for n := range 3 {
			f := legacytest.Read(t, st.Open(t, "POST", strings.ReplaceAll(`{"jsonrpc":"2.0","id":N,"method":"tools/call","params":{"_meta":{"progressToken":N}}}`, "N", string(rune('2'+n))), "Mcp-Session-Id", g.ID))
			f.Next()
			feeds = append(feeds, f)
		}
		_ = (<-peer).Conn.Close()
		var wg sync.WaitGroup
		for _, f := range feeds {
			wg.Go(func() {
				if got, ok := f.Next(); !ok || !strings.Contains(got, "-32001") {
					t.Errorf("event after the loss = %q, %v; want an error", got, ok)
				}
				f.Response.Body.Close()
			})
		}
		wg.Wait()
	}
}
