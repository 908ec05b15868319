package link

import (
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Calls are the requests in flight on a Link. Safe for concurrent use.
type Calls struct {
	ids *atomic.Int64 // the last one of a request; the Endpoint's, if there is one

	// mu guards the fields below. It is held for map work only. An Owner's mu may be
	// taken under it.
	mu   sync.Mutex
	byID map[int64]*Call
	err  error // why no more may be added
}

// LastID returns the last id that a request was given.
func (t *Calls) LastID() int64 { return t.ids.Load() }

// SetLastID has ids go on from the last one that the server has seen.
func (t *Calls) SetLastID(id int64) { t.ids.Store(id) }

// Add takes c in and gives it an id. The error is an [*upstream.Failure] if the session
// has ended.
//
// Ids are small and count from 1: some servers ignore others without a word.
func (t *Calls) Add(c *Call) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return &upstream.Failure{Cause: t.err, Fate: upstream.NotSent, Lost: true}
	}
	c.ID = t.ids.Add(1)
	t.byID[c.ID] = c
	return nil
}

// Remove makes later responses to c late ones.
func (t *Calls) Remove(c *Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, c.ID)
}

// Find returns the request in flight with an id that the server wrote, or nil.
func (t *Calls) Find(id wire.ID) *Call {
	n, ok := id.Int()
	if !ok {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[n]
}

// Each calls f for the requests in flight. f may take an Owner's lock, but no other.
func (t *Calls) Each(f func(*Call)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.byID {
		f(c)
	}
}

// busy reports whether a request waits for its response.
func (t *Calls) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID) > 0
}

// end has no more requests added. It reports false if it was called before.
func (t *Calls) end(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return false
	}
	t.err = err
	return true
}

// ended returns why no more requests may be added, nil if they may.
func (t *Calls) ended() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// cancel ends all requests in flight with a cause.
func (t *Calls) cancel(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.byID {
		c.Cancel(cause)
	}
}
