package watchtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A Hub is an Audience whose streams call the Watch of a source, in one scope. Its tests run
// in a bubble of synctest.
type Hub struct {
	*Audience
	T     *testing.T
	Scope string
	Share mcp.Share
	Watch func(context.Context, mcp.Profile, []fanout.Topic) ([]fanout.Topic, func(), error)
}

// A Stream is one caller of Watch.
type Stream struct {
	Honored []fanout.Topic
	Release func() // as Watch returned it
	Err     error
	hub     *Hub
}

// Listen opens a stream and waits for the acknowledgment.
func (h *Hub) Listen(want ...fanout.Topic) *Stream { return h.ListenCtx(h.T.Context(), want...) }

// ListenCtx is Listen, for as long as ctx lasts.
func (h *Hub) ListenCtx(ctx context.Context, want ...fanout.Topic) *Stream {
	s := &Stream{hub: h}
	h.Want(1, want...)
	s.Honored, s.Release, s.Err = h.Watch(ctx, mcp.Profile{Scope: h.Scope, Share: h.Share}, want)
	for _, t := range want {
		if !slices.Contains(s.Honored, t) {
			h.Want(-1, t)
		}
	}
	return s
}

// GoListen opens a stream beside the test, which gets it when it is acknowledged.
func (h *Hub) GoListen(want ...fanout.Topic) <-chan *Stream {
	c := make(chan *Stream, 1)
	go func() { c <- h.Listen(want...) }() // ends with Watch
	return c
}

// Close leaves the index, and then the Watch.
func (s *Stream) Close() {
	s.hub.Want(-1, s.Honored...)
	if s.Release != nil {
		s.Release()
	}
}

// WantHonored checks the names of the topics that were acknowledged.
func (s *Stream) WantHonored(want string) *Stream {
	s.hub.T.Helper()
	if got := TopicNames(s.Honored); s.Err != nil || got != want {
		s.hub.T.Fatalf("Watch = %q, %v, want %q", got, s.Err, want)
	}
	return s
}

// WantNotNow checks that no topic was acknowledged, and that some may be later.
func (s *Stream) WantNotNow() {
	s.hub.T.Helper()
	if !errors.Is(s.Err, mcp.ErrNotNow) || len(s.Honored) > 0 {
		s.hub.T.Fatalf("Watch = %q, %v, want that the server can't report changes at the moment", TopicNames(s.Honored), s.Err)
	}
}

// WantLog compares what happened since the last look, in any order within runs of lines
// that begin with the same word.
func (h *Hub) WantLog(want ...string) {
	h.T.Helper()
	synctest.Wait()
	if got := SortRuns(h.Log.Take()); !slices.Equal(got, SortRuns(want)) {
		h.T.Fatalf("journal: %q, want %q", got, want)
	}
}
