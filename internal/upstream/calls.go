package upstream

import (
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Calls contains the calls in flight on a connection or in a session, by id. The zero value
// is ready to use, and safe for concurrent use.
type Calls struct {
	// mu guards the fields below. It is held for map work only. An Owner's lock may be
	// taken under it.
	mu   sync.Mutex
	byID map[int64]*Call
	err  error // why no more may be added
}

// Add adds c. The error is a [*Failure] if the connection or the session has ended.
func (t *Calls) Add(c *Call) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return &Failure{Cause: t.err, Fate: NotSent, Lost: true}
	}
	if t.byID == nil {
		t.byID = make(map[int64]*Call)
	}
	t.byID[c.ID] = c
	return nil
}

// Remove removes c. A response that arrives afterwards is counted as late.
func (t *Calls) Remove(c *Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, c.ID)
}

// Find returns the call in flight with an id that the server wrote, or nil.
func (t *Calls) Find(id wire.ID) *Call {
	n, ok := id.Int()
	if !ok {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[n]
}

// Each calls f for the calls in flight. f may take an Owner's lock, but no other.
func (t *Calls) Each(f func(*Call)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.byID {
		f(c)
	}
}

// Len returns the number of calls in flight.
func (t *Calls) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}

// Busy reports whether a call waits for its response.
func (t *Calls) Busy() bool { return t.Len() > 0 }

// End prevents further calls. It returns false if it was called before.
func (t *Calls) End(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return false
	}
	t.err = err
	return true
}

// Err returns why no more calls may be added; nil if they may.
func (t *Calls) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Fail fails the calls in flight: there will be no responses.
func (t *Calls) Fail(err error) {
	f := &Failure{Cause: err, Fate: MayHaveRun, Lost: true}
	t.Each(func(c *Call) { c.Fail(f) })
}
