package back

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// What a call's stream is to carry is there when its client's connection takes it up,
// however large: nobody was away.
func TestS02LargeMessages(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	text := strings.Repeat("x", 2*int(limits.ClientEvents.Default))
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		event := legacytest.StartSSE(w)
		event(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"%s"}}`, text)
		event(`{"jsonrpc":"2.0","id":%s,"result":{"text":"%s"}}`, m.ID, text)
	}
	st := linkedTo(t, newTestBack(t, Options{Options: upstream.Options{URL: p.URL}}))
	for _, revision := range []string{"2025-03-26", "2025-11-25"} {
		t.Run("S-02 "+revision, func(t *testing.T) {
			p.Revision = revision
			g := st.Enter(t, revision)
			for range 20 {
				r := g.Call(t, "tools/call", `{}`)
				if n := strings.Count(r.Body, text); n != 2 {
					t.Fatalf("%d of 2 large messages came; the end is %q", n, r.Body[max(0, len(r.Body)-200):])
				}
			}
		})
	}
	if n := st.Drops("limit client_events"); n != 0 {
		t.Errorf("%d messages were not kept", n)
	}
}
