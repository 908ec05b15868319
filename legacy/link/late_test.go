package link

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const pipeHolds = 64 // messages that the peer has not read

// busyPipe opens a session with a peer that has left as many messages unread as the pipe holds.
func busyPipe(t *testing.T) (*rig, *legacytest.ConnPeer) {
	r, p := openPipe(t)
	for range pipeHolds {
		if err := r.Notify(t.Context(), "notifications/vendor", nil); err != nil {
			t.Fatal(err)
		}
	}
	return r, p
}

// readsOn has the peer read those messages.
func readsOn(p *legacytest.ConnPeer) {
	for range pipeHolds {
		p.Want("notifications/vendor")
	}
}

// A call of which nothing was written when its caller left is not made later, and a server hears of
// no cancellation of what it does not know.
func TestLateCallIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := busyPipe(t)
		ctx, leave := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			c := &Call{Call: upstream.Call{Method: "tools/call"}}
			_, err := r.RoundTripLate(ctx, c, []byte(`{}`), time.Hour, func(json.RawMessage) { t.Error("it has a result") })
			failed <- err
		}()
		synctest.Wait()
		leave()
		if err := <-failed; !errors.Is(err, context.Canceled) || MayBeRunning(ctx, err) {
			t.Errorf("RoundTripLate() = %v, want that it was cancelled, and not sent", err)
		}
		time.Sleep(time.Minute)
		readsOn(p)
		if err := r.Notify(t.Context(), "notifications/after", nil); err != nil {
			t.Error(err)
		}
		p.Want("notifications/after")
	})
}

// One that was written is cancelled, and its result still counts, though the server reads on late.
func TestLateCallOfABusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := openPipe(t)
		ctx, leave := context.WithCancel(t.Context())
		failed, late := make(chan error, 1), make(chan string, 1)
		go func() {
			c := &Call{Call: upstream.Call{Method: "tools/call"}}
			_, err := r.RoundTripLate(ctx, c, []byte(`{}`), time.Hour, func(result json.RawMessage) { late <- string(result) })
			failed <- err
		}()
		synctest.Wait()
		leave()
		if err := <-failed; err != context.Canceled {
			t.Errorf("RoundTripLate() = %v, want that it was cancelled", err)
		}
		time.Sleep(time.Minute)
		m := p.Want("tools/call")
		p.Want("notifications/cancelled")
		p.Result(m.ID, `{"made":1}`)
		if got := <-late; got != `{"made":1}` {
			t.Errorf("late result %s", got)
		}
	})
}

// A request that nobody waits for reaches a server that reads much later. Its response is waited for
// from then on.
func TestRequestLaterOfABusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := busyPipe(t)
		r.RequestLater(t.Context(), "tasks/cancel", []byte(`{"taskId":"x"}`))
		time.Sleep(time.Hour)
		readsOn(p)
		m := p.Want("tasks/cancel")
		begun := time.Now()
		if c := p.Want("notifications/cancelled"); string(wire.Get(c.Params, "requestId")) != m.ID.String() || time.Since(begun) != sendTimeout {
			t.Errorf("%s after %v, want the request given up after %v", c.Text, time.Since(begun), sendTimeout)
		}
	})
}
