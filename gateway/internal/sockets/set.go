// Package sockets knows the WebSockets of clients: how many there may be, and how all of them
// end. net/http does not close connections that were hijacked.
package sockets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// ErrYielded is why a WebSocket ends whose place another client needs.
var ErrYielded = errors.New("another client, which has none, needs its place")

// A Socket is an open WebSocket.
type Socket interface {
	io.Closer
	// Yield begins to end it in order, because of ErrYielded. It does not wait.
	Yield()
	// Idle returns when the last message passed, and whether calls are in flight.
	Idle() (since time.Time, busy bool)
}

// A Set has the open WebSockets. Safe for concurrent use.
type Set struct {
	// Set by New, read-only after.
	live   context.Context // ends with the first stop
	cancel context.CancelFunc

	running sync.WaitGroup // the goroutines that serve them

	// mu guards the fields below. It is held for map work, and for Idle.
	mu      sync.Mutex
	open    map[Socket]holder
	lent    map[string]context.CancelCauseFunc // those that other replicas have opened here, by name
	places  mcp.Places                         // also of those in the handshake
	stopped bool
}

// A holder is who has opened a WebSocket.
type holder struct {
	share   mcp.Share
	yielded bool // its place is another one's, while it ends
}

// New returns an empty Set. It has no place before Bound.
func New() *Set {
	s := &Set{open: make(map[Socket]holder), lent: make(map[string]context.CancelCauseFunc), places: mcp.Places{
		All: limits.WebSockets, Each: limits.WebSocketsEach,
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

// Reserve takes a place for a WebSocket of a share; Release gives it back. The place may be that
// of another one, which yields. The error is mcp.ErrShutdown or a [*LimitError].
func (s *Set) Reserve(share mcp.Share) (yielded bool, err error) {
	s.mu.Lock()
	yields, err := s.reserveLocked(share)
	s.mu.Unlock()
	if yields != nil {
		yields.Yield()
	}
	return yields != nil, err
}

func (s *Set) reserveLocked(share mcp.Share) (yields Socket, err error) {
	if s.stopped {
		return nil, mcp.ErrShutdown
	}
	if limit, most := s.places.Full(share); limit != nil {
		if yields = s.yieldLocked(share); yields == nil {
			return nil, &LimitError{limit, most}
		}
	}
	s.places.Take(share)
	s.running.Add(1)
	return yields, nil
}

// yieldLocked frees the place of the WebSocket that yields to one of a share: of those of the
// biggest share the one that has been idle for longest, without calls if possible. It returns
// nil if there is none.
func (s *Set) yieldLocked(to mcp.Share) (longest Socket) {
	biggest, ok := s.places.Biggest(to)
	if !ok {
		return nil
	}
	var since time.Time
	var busy bool
	for c, by := range s.open {
		if by.share != biggest || by.yielded {
			continue
		}
		if t, calls := c.Idle(); longest == nil || busy && !calls || busy == calls && t.Before(since) {
			longest, since, busy = c, t, calls
		}
	}
	if longest != nil {
		s.open[longest] = holder{biggest, true}
		s.places.Give(biggest)
	}
	return longest
}

// Add adds a WebSocket of a share, for which Reserve has taken a place.
func (s *Set) Add(share mcp.Share, c Socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = holder{share: share}
}

// Release gives back the place of a WebSocket, unless it has yielded that. c is nil if the
// handshake failed.
func (s *Set) Release(share mcp.Share, c Socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open[c].yielded {
		s.places.Give(share)
	}
	delete(s.open, c)
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

// Bound sets the limits: of all WebSockets, and of those of each share.
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
