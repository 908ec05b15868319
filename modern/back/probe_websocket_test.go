package back

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A timeUp is a context whose deadline has passed when done is closed.
type timeUp struct {
	context.Context
	done chan struct{}
}

func (c timeUp) Done() <-chan struct{} { return c.done }

func (c timeUp) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// A server behind a WebSocket that was reached is of the era that it shows, or legacy;
// one that was not is no evidence.
func TestU01ProbeOfAWebSocket(t *testing.T) {
	say := func(format string) func(*websocket.Conn, wire.ID) {
		return func(ws *websocket.Conn, id wire.ID) {
			_ = ws.WriteMessage(websocket.TextMessage, []byte(strings.ReplaceAll(format, "ID", id.String())))
		}
	}
	for _, tt := range []struct {
		name   string
		play   func(*websocket.Conn, wire.ID) // nil: the handshake is refused
		want   spec.Era
		reason string
	}{
		{"discovery", say(`{"jsonrpc":"2.0","id":ID,"result":` + discoverResult(0, "private") + `}`), spec.Modern, "answered server/discover"},
		{"unknown method", say(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}`), spec.Legacy, "Method not found"},
		{"not JSON", say(`hello`), spec.Legacy, "in time"},
		{"silence", func(*websocket.Conn, wire.ID) {}, spec.Legacy, "in time"},
		{"closed for it", func(ws *websocket.Conn, _ wire.ID) {
			_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1008, "initialize first"), time.Time{})
		}, spec.Legacy, "initialize first"},
		{"cut for it", func(ws *websocket.Conn, _ wire.ID) { _ = ws.Close() }, spec.Legacy, "without a close frame"},
		{"no WebSocket there", nil, spec.Unknown, "HTTP 404"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := timeUp{t.Context(), make(chan struct{})}
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tt.play == nil {
					http.NotFound(w, r)
					return
				}
				ws, err := (&websocket.Upgrader{Subprotocols: []string{"mcp"}}).Upgrade(w, r, nil)
				if err != nil {
					t.Error(err)
					return
				}
				defer ws.Close()
				_, msg, _ := ws.ReadMessage()
				if m, err := wire.Parse(msg, wire.Options{}); err != nil || m.Method != spec.MethodDiscover {
					t.Errorf("the probe sent %s, want server/discover", msg)
				} else {
					tt.play(ws, m.ID)
				}
				if tt.reason == "in time" {
					close(ctx.done)
				}
				_, _, _ = ws.ReadMessage() // until the probe has ended
			}))
			defer srv.Close()
			dial := func(ctx context.Context) (transport.Conn, error) {
				c, err := transport.DialWebSocket(ctx, transport.DialOptions{URL: "ws" + strings.TrimPrefix(srv.URL, "http")})
				if err != nil {
					return nil, err
				}
				return c, nil
			}
			v, err := Probe(ctx, Options{Options: upstream.Options{Name: "odd", ClientInfo: json.RawMessage(upInfo)}, Dial: dial}, mcp.Probing{})
			if err != nil || v.Era != tt.want || !strings.Contains(v.Reason, tt.reason) {
				t.Errorf("Probe = %+v, %v, want %v for %q", v, err, tt.want, tt.reason)
			}
		})
	}
}
