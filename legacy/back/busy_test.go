package back

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A server that handles one message at a time reads nothing while it works on a call. The calls
// behind it wait for as long as their own time allows, in the same session.
func TestM2L14BusyServerLosesNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{Options: upstream.Options{Settings: settings.Server{Timeouts: settings.Timeouts{Request: 30 * time.Second}}}})
		const calls = 100 // more than the pipe holds
		done := make(chan error, calls)
		serve := func(ctx context.Context, name string) error {
			_, err := body(b.Serve(ctx, ask("tools/call", fmt.Sprintf(`{"name":%q}`, name)), &backtest.Caller{}))
			return err
		}
		go func() { done <- serve(t.Context(), "first") }()
		p := <-peers
		p.Handshake(legacytest.Everything)
		first := p.Want("tools/call")
		for range calls - 1 {
			go func() { done <- serve(t.Context(), "other") }()
		}
		synctest.Wait()
		impatient, leave := context.WithTimeout(t.Context(), 5*time.Second)
		defer leave()
		if err := serve(impatient, "withdrawn"); err == nil {
			t.Error("a call that its client cancelled was answered")
		}
		time.Sleep(15 * time.Second)
		for range calls - 1 {
			m := p.Want("tools/call")
			if name, _ := wire.GetString(m.Params, "name"); name != "other" {
				t.Errorf("the server got call %q", name)
			}
			p.Result(m.ID, `{"content":[]}`)
		}
		p.Result(first.ID, `{"content":[]}`)
		for range calls {
			if err := <-done; err != nil {
				t.Errorf("Serve() = %v", err)
			}
		}
		synctest.Wait()
		if len(peers) > 0 {
			t.Error("there is another session")
		}
	})
}

// A message that waits for a server that never reads does not delay the end.
func TestM2L14BusyServerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		done := make(chan error, 100)
		for range cap(done) {
			go func() {
				_, err := body(b.Serve(t.Context(), ask("tools/call", `{"name":"x"}`), &backtest.Caller{}))
				done <- err
			}()
		}
		p := <-peers
		p.Handshake(legacytest.Everything)
		synctest.Wait()
		begun := time.Now()
		_ = b.Close(t.Context())
		for range cap(done) {
			if err := <-done; err == nil {
				t.Error("a call was answered by nobody")
			}
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}
