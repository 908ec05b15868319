package watch

import (
	"cmp"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// A rig is a server, the watches of it, and an audience.
type rig struct {
	t      *testing.T
	server *script
	ws     *Watches
	*watchtest.Hub
}

// withRig runs a test in a bubble of its own. All must have ended at its end.
func withRig(t *testing.T, opts options, test func(t *testing.T, st *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st := newRig(t, opts)
		defer func() {
			st.ws.Close()
			if n := st.server.count(func(s *script) int { return s.held }); n != 0 {
				t.Errorf("after close: %d sessions held, want 0", n)
			}
		}()
		test(t, st)
	})
}

func newRig(t *testing.T, opts options) *rig {
	log := &watchtest.Journal{}
	st := &rig{
		t:      t,
		server: &script{offers: allOffers, log: log},
	}
	aud := watchtest.NewAudience(log)
	if opts.Options == nil {
		opts.Options = &upstream.Options{}
	}
	opts.Name, opts.Changes, opts.Metrics = "files", aud, aud
	opts.Fill(spec.Legacy)
	opts.pace, opts.hold = cmp.Or(opts.pace, usual), st.server.hold
	st.ws = newTable(&opts)
	st.Hub = &watchtest.Hub{Audience: aud, T: t, Scope: testScope, Watch: st.ws.Watch}
	return st
}

func (st *rig) wantSubscribed(want ...string) {
	st.t.Helper()
	synctest.Wait()
	if got := st.server.subscribed(); !slices.Equal(got, want) {
		st.t.Fatalf("subscribed upstream: %q, want %q", got, want)
	}
}

func (st *rig) wantCalls(want ...string) {
	st.t.Helper()
	synctest.Wait()
	if got := st.server.callsOf(""); !slices.Equal(got, want) {
		st.t.Fatalf("calls: %q, want %q", got, want)
	}
}

// wantEnded checks that the watch has ended and holds nothing.
func (st *rig) wantEnded() {
	st.t.Helper()
	synctest.Wait()
	held := st.server.count(func(s *script) int { return s.held })
	if w := st.ws.Of(testScope); w != nil || held != 0 {
		st.t.Fatalf("watch %v, %d sessions held, want none", w != nil, held)
	}
}

func (st *rig) current() *Watch { return st.ws.Of(testScope) }
