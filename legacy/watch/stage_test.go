package watch

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A stage is a server, the watches of it, and an audience.
type stage struct {
	t      *testing.T
	server *script
	aud    *bridgetest.Audience
	ws     *Watches
	log    *bridgetest.Journal
}

// onStage runs a test in a bubble of its own. All must have ended at its end.
func onStage(t *testing.T, opts Options, test func(t *testing.T, st *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, opts)
		defer func() {
			st.ws.Close()
			if n := st.server.count(func(s *script) int { return s.held }); n != 0 {
				t.Errorf("after close: %d sessions held, want 0", n)
			}
		}()
		test(t, st)
	})
}

func newStage(t *testing.T, opts Options) *stage {
	log := &bridgetest.Journal{}
	st := &stage{
		t:      t,
		server: &script{offers: allOffers, log: log},
		aud:    bridgetest.NewAudience(log),
		log:    log,
	}
	opts.Name, opts.Hold, opts.Changes, opts.Metrics = "files", st.server.hold, st.aud, st.aud
	st.ws = New(opts)
	return st
}

// A stream is one caller of Watch, which does as the gateway does.
type stream struct {
	st      *stage
	honored []fanout.Topic
	release func()
	err     error
}

// listen opens a stream and waits for the acknowledgment.
func (st *stage) listen(want ...fanout.Topic) *stream {
	return st.listenCtx(st.t.Context(), want...)
}

func (st *stage) listenCtx(ctx context.Context, want ...fanout.Topic) *stream {
	s := &stream{st: st}
	st.aud.Want(1, want...)
	s.honored, s.release, s.err = st.ws.Watch(ctx, mcp.Profile{Scope: testScope}, want)
	for _, t := range want {
		if !slices.Contains(s.honored, t) {
			st.aud.Want(-1, t)
		}
	}
	return s
}

// goListen opens a stream and returns at once; the channel gives it when it is
// acknowledged.
func (st *stage) goListen(want ...fanout.Topic) <-chan *stream {
	c := make(chan *stream, 1)
	go func() { c <- st.listen(want...) }()
	return c
}

func (s *stream) close() {
	s.st.aud.Want(-1, s.honored...)
	if s.release != nil {
		s.release()
	}
}

func (s *stream) wantHonored(want string) {
	s.st.t.Helper()
	if s.err != nil || bridgetest.TopicNames(s.honored) != want {
		s.st.t.Fatalf("Watch = %q, %v, want %q", bridgetest.TopicNames(s.honored), s.err, want)
	}
}

func (st *stage) wantSubscribed(want ...string) {
	st.t.Helper()
	synctest.Wait()
	if got := st.server.subscribed(); !slices.Equal(got, want) {
		st.t.Fatalf("subscribed upstream: %q, want %q", got, want)
	}
}

func (st *stage) wantCalls(want ...string) {
	st.t.Helper()
	synctest.Wait()
	if got := st.server.callsOf(""); !slices.Equal(got, want) {
		st.t.Fatalf("calls: %q, want %q", got, want)
	}
}

// wantLog compares what happened since the last look. Lines that follow each
// other and begin with the same word may come in any order.
func (st *stage) wantLog(want ...string) {
	st.t.Helper()
	synctest.Wait()
	if got := st.log.Take(); !slices.Equal(bridgetest.SortRuns(got), bridgetest.SortRuns(want)) {
		st.t.Fatalf("journal: %q, want %q", got, want)
	}
}

// wantEnded checks that the watch has ended and holds nothing.
func (st *stage) wantEnded() {
	st.t.Helper()
	synctest.Wait()
	held := st.server.count(func(s *script) int { return s.held })
	if w := st.ws.Of(testScope); w != nil || held != 0 {
		st.t.Fatalf("watch %v, %d sessions held, want none", w != nil, held)
	}
}

func (st *stage) watch() *Watch { return st.ws.Of(testScope) }
