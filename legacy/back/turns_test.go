package back

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A lateConn takes its time for cancellations.
type lateConn struct{ transport.Conn }

func (c lateConn) Write(msg []byte) error {
	if strings.Contains(string(msg), spec.NotifyCancelled) {
		time.Sleep(time.Second)
	}
	return c.Conn.Write(msg)
}

// The next call of a lane runs when the server was sent the cancellation of the one before: a
// question that comes after it would be taken for that of the call which was cancelled.
func TestM2L20NextCallFollowsTheCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, peers := legacytest.Pipes(t)
		b := newTestBack(t, Options{Dial: func(ctx context.Context) (transport.Conn, error) {
			c, err := dial(ctx)
			return lateConn{c}, err
		}})
		call := func(ctx context.Context, name string) <-chan error {
			req := ask(spec.MethodToolsCall, `{"name":"`+name+`"}`)
			req.Profile.Capabilities = json.RawMessage(`{"elicitation":{}}`)
			done := make(chan error, 1)
			go func() {
				_, err := body(b.Serve(ctx, req, &backtest.Caller{}))
				done <- err
			}()
			return done
		}
		ctx, cancel := context.WithCancel(t.Context())
		first := call(ctx, "first")
		p := <-peers
		p.Handshake(legacytest.Everything)
		m := p.Want(spec.MethodToolsCall)
		cancel()
		begun := time.Now()
		if err := <-first; err == nil || time.Since(begun) > 0 {
			t.Errorf("the cancelled call ended with %v after %v, want that at once", err, time.Since(begun))
		}
		second := call(t.Context(), "second")
		if got := p.Want(spec.NotifyCancelled); !strings.Contains(string(got.Params), `"requestId":`+m.ID.String()) {
			t.Errorf("cancelled %s, want %s", got.Params, m.ID)
		}
		p.Result(p.Want(spec.MethodToolsCall).ID, `{"content":[]}`)
		if err := <-second; err != nil {
			t.Error(err)
		}
	})
}
