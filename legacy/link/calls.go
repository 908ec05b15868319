package link

import (
	"context"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// Calls are the requests in flight on a Link. Safe for concurrent use.
type Calls struct {
	*upstream.Calls
	ids *atomic.Int64 // the last one of a request; the Endpoint's, if there is one
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
	c.ID = t.ids.Add(1)
	return t.Calls.Add(&c.Call)
}

// Remove makes later responses to c late ones.
func (t *Calls) Remove(c *Call) { t.Calls.Remove(&c.Call) }

// A Call is one request in flight on a Link.
type Call struct {
	// Set before the request is sent, read-only after. Calls.Add sets ID.
	upstream.Call

	Opens  bool // it is the initialize that opens the session
	Passes bool // its response is passed on as the server wrote it
	// Taken is closed when the server has begun to answer the POST of the call; nil if
	// nobody waits for that.
	Taken chan struct{}
}

// Begin returns a context that ends with ctx, and by c.Cancel.
func (c *Call) Begin(ctx context.Context) context.Context {
	ctx, c.Cancel = context.WithCancelCause(ctx)
	return ctx
}

// wasTaken says that the server has begun to answer the POST of the call, of which there
// is one.
func (c *Call) wasTaken() {
	if c.Taken != nil {
		close(c.Taken)
	}
}

// closeIntake gives the memory of the response back.
func (c *Call) closeIntake() {
	if c.In != nil {
		c.In.Close()
	}
}
