package back

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/legacy/watch"
)

// serveOne lists once for a scope.
func serveOne(t *testing.T, b *Back, scope string) error {
	t.Helper()
	req := ask("tools/list", "")
	req.Profile.Scope = scope
	_, err := body(b.Serve(t.Context(), req, &backtest.Caller{}))
	return err
}

func TestM2L02SingleSessionsEndWithTheirCall(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["tools/list"] = listOnce
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	for range 2 {
		req := ask("tools/list", "")
		req.Profile.Single = true
		if _, err := body(b.Serve(t.Context(), req, &backtest.Caller{})); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if i, d := len(p.Requests("initialize")), len(p.Requests("DELETE")); i != 2 || d != 2 {
		t.Errorf("%d sessions opened and %d ended, want 2 and 2", i, d)
	}
}

// The watch's hold on a session keeps it, whoever leaves first.
func TestWatchSessionHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{Options: upstream.Options{Settings: settings.Server{Idle: time.Second}}})
		go func() { (<-peers).Run() }()
		w, release, err := b.watchSession(t.Context(), ask("", "").Profile)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		select {
		case <-w.Done():
			t.Fatal("the session ended while a watch held it")
		default:
		}
		if o := w.Offers(); o != (watch.Offers{Lists: mcp.Lists{Tools: true, Prompts: true, Resources: true}, Subscribe: true, Channel: true}) {
			t.Errorf("offers = %+v", o)
		}
		if !w.Offers().Lists.Has(fanout.ToolsListChanged) {
			t.Error("tools are not offered")
		}
		release()
		time.Sleep(2 * time.Second)
		<-w.Done()
	})
}
