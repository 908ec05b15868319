package link

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// Calls contains the requests in flight on a Link. It is safe for concurrent use.
type Calls struct {
	*upstream.Calls
	ids       *atomic.Int64 // the last id of a request; shared with the Endpoint, if there is one
	aftermath *aftermath
}

// LastID returns the id of the latest request.
func (t *Calls) LastID() int64 { return t.ids.Load() }

// SetLastID sets the last id that the server has seen. The next request gets the one after
// it.
func (t *Calls) SetLastID(id int64) { t.ids.Store(id) }

// Add adds c and sets its id. The error is an [*upstream.Failure] if the session has ended.
//
// Ids are small and count from 1: some servers silently ignore requests with other ids.
func (t *Calls) Add(c *Call) error {
	c.ID = t.ids.Add(1)
	return t.Calls.Add(&c.Call)
}

// Remove removes c. A response that arrives afterwards is counted as late.
func (t *Calls) Remove(c *Call) { t.Calls.Remove(&c.Call) }

// Finish ends a call that got a response. The caller must free the returned response.
func (t *Calls) Finish(c *Call, r upstream.Response) upstream.Response {
	t.Remove(c)
	t.aftermath.passed(c)
	release := r.Release
	r.Release = func() {
		if release != nil {
			release()
		}
		c.closeIntake()
		c.Cancel(nil) // not earlier: a stream may have to be read to its end
	}
	return r
}

// A Call is one request in flight on a Link.
type Call struct {
	// Set before the request is sent, read-only after. Calls.Add sets ID.
	upstream.Call

	Opens  bool // it is the initialize request that opens the session
	Passes bool // its response is forwarded as the server wrote it
	// Taken is closed when the server has begun to answer the POST of the call, or when the call
	// was written to a connection, or is not going to be; nil if no goroutine waits for that.
	Taken chan struct{}
	// Withdrawn says that nothing of it was sent on a connection. Read it only after Taken is
	// closed.
	Withdrawn bool
	// until ends when nobody wants the call any more: it is withdrawn if nothing of it was sent on a
	// connection by then. Nil means with the context of the call.
	until context.Context
	// awaited is how long the response is awaited once the call was sent on a connection, however
	// long that took; zero means for as long as the context of the call lasts.
	awaited time.Duration
	// Cancelled is closed when the server was sent the cancellation of the call, or can't be.
	// Abandon sets it; it is nil if the server gets none.
	Cancelled <-chan struct{}
}

// Begin returns a context that ends with ctx or when c.Cancel is called.
func (c *Call) Begin(ctx context.Context) context.Context {
	ctx, c.Cancel = context.WithCancelCause(ctx)
	return ctx
}

// wasTaken closes Taken. It is called at most once, since a call is sent once.
func (c *Call) wasTaken() {
	if c.Taken != nil {
		close(c.Taken)
	}
}

// closeIntake releases the memory of the response.
func (c *Call) closeIntake() {
	if c.In != nil {
		c.In.Close()
	}
}
