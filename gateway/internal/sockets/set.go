// Package sockets knows the WebSockets of clients: how many there may be, and how all of them
// end. net/http does not close connections that were hijacked.
package sockets

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A Set has the open WebSockets. Safe for concurrent use.
type Set struct {
	// Set by New, read-only after.
	live   context.Context // ends with the first stop
	cancel context.CancelFunc

	running sync.WaitGroup // the goroutines that serve them

	// mu guards the fields below. It is held for map work only.
	mu      sync.Mutex
	open    map[io.Closer]struct{}
	lent    map[string]context.CancelFunc // those that other replicas have opened here, by name
	places  downstream.Places             // also of those in the handshake
	stopped bool
}

// New returns an empty Set, with its limits: of all WebSockets, and of those of each share.
func New(all, each int) *Set {
	s := &Set{open: make(map[io.Closer]struct{}), lent: make(map[string]context.CancelFunc), places: downstream.Places{
		All: limits.WebSockets, Max: all, Each: limits.WebSocketsEach, MaxEach: each,
	}}
	s.live, s.cancel = context.WithCancel(context.Background())
	return s
}

// A LimitError reports that a limit on WebSockets is reached.
type LimitError struct {
	Limit *limits.Limit
	Max   int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%d WebSockets are open, the limit; close some, or %s", e.Max, e.Limit.Raise())
}

// Reserve takes a place for a WebSocket of a share; Release gives it back. The error is
// mcp.ErrShutdown or a [*LimitError].
func (s *Set) Reserve(share mcp.Share) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return mcp.ErrShutdown
	}
	if limit, most := s.places.Full(share); limit != nil {
		return &LimitError{limit, most}
	}
	s.places.Take(share)
	s.running.Add(1)
	return nil
}

// Add adds a WebSocket for which Reserve has taken a place.
func (s *Set) Add(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = struct{}{}
}

// Release gives back the place of a WebSocket. c is nil if the handshake failed.
func (s *Set) Release(share mcp.Share, c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	s.places.Give(share)
	s.running.Done()
}

// Stop refuses new WebSockets, and begins to end the open ones gracefully.
func (s *Set) Stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.cancel()
}

// Wait waits until all WebSockets have ended. When ctx ends, it closes them.
func (s *Set) Wait(ctx context.Context) error {
	return downstream.Join(ctx, &s.running, s.cut)
}

// cut closes the open WebSockets, and returns their number.
func (s *Set) cut() int {
	s.mu.Lock()
	open := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	var cuts sync.WaitGroup
	for _, c := range open {
		cuts.Go(func() { _ = c.Close() }) // its goroutine logs the reason
	}
	cuts.Wait()
	return len(open)
}

// Bound sets the limits.
func (s *Set) Bound(all, each int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places.Max, s.places.MaxEach = all, each
}

// Len returns how many are open.
func (s *Set) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
