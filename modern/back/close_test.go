package back

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Close ends the requests in flight at a server that does not answer: those of clients, and those of
// the gateway itself.
func TestCloseEndsRequests(t *testing.T) {
	for name, send := range map[string]func(context.Context, *Back) error{
		"a client's": func(ctx context.Context, b *Back) error {
			_, err := b.Serve(ctx, upRequest("tools/call", `{"name":"x"}`), &backtest.Caller{})
			return err
		},
		"its own": func(ctx context.Context, b *Back) error {
			_, err := b.request(ctx, "tools/list", nil, mcp.Profile{Scope: "scripted/1", Capabilities: []byte("{}")})
			return err
		},
	} {
		p := newUpPeer(t)
		silent := func(_ http.ResponseWriter, r *http.Request, _ wire.Message) { <-r.Context().Done() }
		p.on["tools/call"], p.on["tools/list"] = silent, silent
		b := p.back(Options{})
		ended := make(chan error, 1)
		go func() { ended <- send(t.Context(), b) }()
		bridgetest.Eventually(t, "sent", func() bool { return len(p.requests("tools/call"))+len(p.requests("tools/list")) == 1 })
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("%s: Close = %v", name, err)
		}
		select {
		case err := <-ended:
			if err == nil || t.Context().Err() != nil {
				t.Errorf("%s ended with %v, want an error", name, err)
			}
		case <-time.After(bridgetest.Patience):
			t.Fatalf("%s goes on after Close", name)
		}
	}
}
