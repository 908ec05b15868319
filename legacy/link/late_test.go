package link

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
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
