package upstream

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trace"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// parsing is how a server's messages are parsed: as strictly as those of clients, who
// would have to refuse what is passed on.
var parsing = wire.Options{}

// errAnswered ends the context of a call whose response came where its goroutine does not
// read.
var errAnswered = errors.New("answered on another stream")

// A Call is one request as it is sent to a server. What a client asks may take several.
type Call struct {
	// Set before the call is sent, read-only after.
	ID     int64
	Method string
	Owner  Owner // nil for a request that the gateway makes for itself
	// Behalf is on whose behalf it is; zero for that of the [HTTP] that sends it.
	Behalf Behalf
	In     *mcp.Intake // takes memory for its response; nil for no bound
	// Exchange is told of the call; nil while nobody observes.
	Exchange *trace.Exchange
	// Cancel ends the context under which the call is sent: when its reply has been read
	// to the end, or there is nothing to wait for any more. It is nil where Wake tells the
	// latter.
	Cancel context.CancelCauseFunc
	// Wake has the goroutine in [Mux.Do] make the Owner deliver, and look whether the call
	// has ended. Nil where no such goroutine waits.
	Wake wake.Signal
	// Patience is how long the end of a stream may take to come after the response. Zero
	// means 100 ms, but no time at all for a server that keeps streams open.
	Patience time.Duration

	state    atomic.Uint32
	response Response // meaningful once it is settled
	err      error    // meaningful once it has failed
}

// The states of a Call.
const (
	open uint32 = iota
	ending
	settled
	failed
)

// An Owner is whom a call is made for.
type Owner interface {
	// Answered takes the response, on the goroutine that has read it.
	Answered(c *Call, r Response)
	// Deliver gives the client the notifications that are queued for it.
	Deliver()
}

// Is reports whether id, as the server wrote it, is the call's.
func (c *Call) Is(id wire.ID) bool {
	n, ok := id.Int()
	return ok && n == c.ID
}

// Settle takes the response. It reports false, and leaves r to its caller, if the call has
// ended before.
func (c *Call) Settle(r Response) bool {
	if !c.state.CompareAndSwap(open, ending) {
		return false
	}
	c.response = r
	c.state.Store(settled)
	if c.Owner != nil {
		c.Owner.Answered(c, r)
	}
	return true
}

// SettleElsewhere is Settle on a goroutine that is not the one which waits.
func (c *Call) SettleElsewhere(r Response) bool {
	if !c.Settle(r) {
		return false
	}
	c.wake(errAnswered)
	return true
}

// Fail says that there will be no response, and why. It reports false if the call has
// ended before.
func (c *Call) Fail(err error) bool {
	if !c.state.CompareAndSwap(open, ending) {
		return false
	}
	c.err = err
	c.state.Store(failed)
	c.wake(err)
	return true
}

// wake has whoever waits look at how the call has ended.
func (c *Call) wake(why error) {
	if c.Cancel != nil {
		c.Cancel(why)
	} else {
		c.Wake.Send()
	}
}

// Notice has the goroutine in [Mux.Do] deliver.
func (c *Call) Notice() { c.Wake.Send() }

// IsSettled reports whether there is a response.
func (c *Call) IsSettled() bool { return c.state.Load() == settled }

// Settled returns the response, if there is one yet.
func (c *Call) Settled() (Response, bool) {
	if !c.IsSettled() {
		return Response{}, false
	}
	return c.response, true
}

// Outcome returns how the call has ended, if it has: with a response, or an error.
func (c *Call) Outcome() (r Response, err error, ended bool) {
	switch c.state.Load() {
	case settled:
		return c.response, nil, true
	case failed:
		return Response{}, c.err, true
	}
	return Response{}, nil, false
}

// from returns a reader of the response that takes memory for it.
func (c *Call) from(src io.Reader) io.Reader {
	if c == nil || c.In == nil {
		return src
	}
	return c.In.From(src)
}

// take takes memory for a response of n bytes that was read already.
func (c *Call) take(n int) error {
	if c.In == nil {
		return nil
	}
	return c.In.Take(n)
}

// Cancellation returns the notification that nobody waits for the call any more, and why.
func (c *Call) Cancellation(why error) []byte {
	reason := "the client cancelled the request"
	if errors.Is(why, ErrTooLong) || errors.Is(why, context.DeadlineExceeded) {
		reason = "time-out"
	}
	return wire.AppendNotification(nil, spec.NotifyCancelled, wire.AppendEdited(nil, nil,
		wire.Edit{Name: "requestId", Value: wire.NumberID(c.ID).Append(nil)},
		wire.Edit{Name: "reason", Value: wire.Quote(reason)}), nil)
}
