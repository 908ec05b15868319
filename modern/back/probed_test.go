package back

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// probedBack returns a started Back of which a probe has told, and which has to wait
// for dialled.
func probedBack(t *testing.T, dialled <-chan transport.Conn) *Back {
	t.Helper()
	b, err := New(Options{
		Options: upstream.Options{Name: "scripted", ClientInfo: json.RawMessage(upInfo), Settings: settings.Server{Extensions: settings.Extensions{Hide: []string{"hidden"}}}},
		Probed: &mcp.Description{
			Capabilities: json.RawMessage(`{"tools":{},"extensions":{"hidden":{},"shown":{}}}`),
			ServerInfo:   json.RawMessage(`{"name":"probed"}`),
			Cache:        mcp.CacheHint{TTL: 60_000, Public: true},
		},
		Dial: func(ctx context.Context) (transport.Conn, error) {
			select {
			case conn := <-dialled:
				if conn == nil {
					return nil, errors.New("no such program")
				}
				return conn, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Start()
	return b
}

// What a probe was told is told until the server itself has said more: at once, without
// what is hidden, and not to be kept.
func TestL2M01ProbedWhileStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialled := make(chan transport.Conn)
		b := probedBack(t, dialled)
		defer b.Close(context.Background())
		begun := time.Now()
		d, err := b.Describe(t.Context(), ofScope("a"))
		if err != nil || time.Since(begun) > 0 {
			t.Fatalf("Describe() = %v after %v, want what the probe found, at once", err, time.Since(begun))
		}
		if got, want := string(d.Capabilities), `{"tools":{},"extensions":{"shown":{}}}`; got != want {
			t.Errorf("capabilities = %s, want %s", got, want)
		}
		if d.Cache != (mcp.CacheHint{}) || string(d.ServerInfo) != `{"name":"probed"}` {
			t.Errorf("Describe() = %s, %+v, want the probed server, not to be kept", d.ServerInfo, d.Cache)
		}
		if err := b.Err(); !errors.Is(err, mcp.ErrStarting) {
			t.Errorf("Err() = %v, want ErrStarting: nobody has seen this process", err)
		}

		near, far := transport.NewPipe()
		defer far.Close()
		dialled <- near
		p := backtest.NewPeer(t, far)
		p.Result(p.Want("server/discover").ID, discoverResult(60_000, "public"))
		synctest.Wait()
		if d, err := b.Describe(t.Context(), ofScope("a")); err != nil || string(d.ServerInfo) != upServerInfo || d.Cache.TTL == 0 {
			t.Errorf("Describe() of the server that is up = %v, %v, want its own account", d, err)
		}
	})
}

// A server that can't be started after the probe is not told of as if it could.
func TestL2M01ProbedAndGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialled := make(chan transport.Conn)
		b := probedBack(t, dialled)
		defer b.Close(context.Background())
		dialled <- nil
		synctest.Wait()
		if d, err := b.Describe(t.Context(), ofScope("a")); err == nil || errors.Is(err, mcp.ErrStarting) {
			t.Errorf("Describe() = %v, %v, want why there is no server", d, err)
		}
	})
}
