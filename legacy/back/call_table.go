package back

import (
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A callTable holds the requests in flight on a session. Safe for concurrent use.
//
// Ids are small and count from 1: some servers ignore others without a word.
type callTable struct {
	ids *atomic.Int64 // the last one of a request; the endpoint's, if there is one

	// mu guards the fields below. It is held for map work only, and may be held when
	// a call's mu is taken.
	mu   sync.Mutex
	byID map[int64]*wireCall
	err  error // why no more may be added
}

// add takes c in and gives it an id. The error is that of end.
func (t *callTable) add(c *wireCall) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	c.id = t.ids.Add(1)
	t.byID[c.id] = c
	return nil
}

// remove makes later answers to c late ones.
func (t *callTable) remove(c *wireCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, c.id)
}

// find returns the request in flight with an id that the server wrote, or nil.
func (t *callTable) find(id wire.ID) *wireCall {
	n, ok := id.Int()
	if !ok {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[n]
}

// busy reports whether a request waits for its answer.
func (t *callTable) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID) > 0
}

// end has no more requests added. It reports false if it was called before.
func (t *callTable) end(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return false
	}
	t.err = err
	return true
}

// ended returns why no more requests may be added, nil if they may.
func (t *callTable) ended() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// cancel ends all requests in flight with a cause.
func (t *callTable) cancel(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.byID {
		c.cancel(cause)
	}
}

// each calls f for the requests in flight. f may take a call's mu, no more.
func (t *callTable) each(f func(*wireCall)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.byID {
		f(c)
	}
}
