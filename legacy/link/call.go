package link

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// errAnswered ends the context of a call whose response came where its goroutine does not
// read.
var errAnswered = errors.New("answered on another stream")

// A Call is one request in flight on a Link.
type Call struct {
	// Set before the request is sent, read-only after. Calls.Add sets ID.
	upstream.Call

	Owner  Owner // nil for a request that is nobody's but the Link's or the session's
	Opens  bool  // it is the initialize that opens the session
	Passes bool  // its response is passed on as the server wrote it
	// Wake has capacity 1. It tells the goroutine in Do to have the Owner deliver. It is
	// nil where that goroutine can't be told, see Link.Attributes.
	Wake chan struct{}
	// Taken is closed when the server has begun to answer the POST of the call; nil if
	// nobody waits for that.
	Taken chan struct{}

	state    atomic.Uint32
	response upstream.Response // meaningful once settled
}

// The states of a Call.
const (
	open uint32 = iota
	settling
	settled
)

// An Owner is whom a request is made for: the client's call that it is, or is a part of.
type Owner interface {
	// Answered takes the response, on the goroutine that has read it.
	Answered(c *Call, r upstream.Response)
	// Deliver gives the client the notifications that are queued for it.
	Deliver()
}

// Begin returns a context that ends with ctx, and by c.Cancel.
func (c *Call) Begin(ctx context.Context) context.Context {
	ctx, c.Cancel = context.WithCancelCause(ctx)
	return ctx
}

// Settle takes the response. It reports false, and leaves r to its caller, if there was
// one before.
func (c *Call) Settle(r upstream.Response) bool {
	if !c.state.CompareAndSwap(open, settling) {
		return false
	}
	c.response = r
	c.state.Store(settled)
	if c.Owner != nil {
		c.Owner.Answered(c, r)
	}
	return true
}

// settleElsewhere is Settle on a goroutine that is not the one in Do.
func (c *Call) settleElsewhere(r upstream.Response) bool {
	if !c.Settle(r) {
		return false
	}
	c.Cancel(errAnswered)
	return true
}

// IsSettled reports whether there is a response.
func (c *Call) IsSettled() bool { return c.state.Load() == settled }

// Settled returns the response, if there is one yet.
func (c *Call) Settled() (upstream.Response, bool) {
	if !c.IsSettled() {
		return upstream.Response{}, false
	}
	return c.response, true
}

// wasTaken says that the server has begun to answer the POST of the call, of which there
// is one.
func (c *Call) wasTaken() {
	if c.Taken != nil {
		close(c.Taken)
	}
}
