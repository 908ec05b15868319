package upstream

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/http1"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// errAnswered ends the context of a call whose response arrived on a stream that its
// goroutine does not read.
var errAnswered = errors.New("answered on another stream")

// A Call is one request to a server. A client's request may take several.
type Call struct {
	// Set before the call is sent, read-only after.
	ID     int64
	Method string
	Owner  Owner // nil for a request of the gateway itself
	// Behalf is on whose behalf the request is sent; zero means that of the [HTTP] that
	// sends it.
	Behalf Behalf
	In     *mcp.Intake // the memory of the response; nil means no limit
	// Fields stand beside the header that the call is posted with, which many calls may share: in
	// place of those of the same names.
	Fields []http1.Field
	// Exchange observes the call; nil if there is no observer.
	Exchange *trace.Exchange
	// Cancel ends the context of the request, when its reply has been read to the end or is
	// not needed any more. It is nil if Wake is set.
	Cancel context.CancelCauseFunc
	// Wake makes the goroutine in [Mux.Do] call the Owner's Deliver, and check whether the
	// call has ended. It is nil if no such goroutine waits.
	Wake wake.Signal
	// Patience is how long to wait for the end of a stream after the response. Zero means
	// 100 ms, or no time for a server that keeps streams open.
	Patience time.Duration

	began    time.Time // set by Observe
	state    atomic.Uint32
	response Response // valid if it is settled
	err      error    // valid if it has failed
}

// The states of a Call.
const (
	open uint32 = iota
	ending
	settled
	failed
)

// An Owner is the client's side of a call.
type Owner interface {
	// Answered gets the response, on the goroutine that has read it.
	Answered(c *Call, r Response)
	// Deliver sends the client the notifications that are queued for it.
	Deliver()
}

// Is reports whether id, as the server wrote it, is the call's.
func (c *Call) Is(id wire.ID) bool {
	n, ok := id.Int()
	return ok && n == c.ID
}

// Settle sets the response. If the call has ended before, it returns false, and the caller
// keeps r.
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

// SettleElsewhere is Settle on a goroutine other than the call's.
func (c *Call) SettleElsewhere(r Response) bool {
	if !c.Settle(r) {
		return false
	}
	c.wake(errAnswered)
	return true
}

// Fail says that there will be no response, and why. It returns false if the call has ended
// before.
func (c *Call) Fail(err error) bool {
	if !c.state.CompareAndSwap(open, ending) {
		return false
	}
	c.err = err
	c.state.Store(failed)
	c.wake(err)
	return true
}

// wake makes the call's goroutine check how the call has ended.
func (c *Call) wake(why error) {
	if c.Cancel != nil {
		c.Cancel(why)
	} else {
		c.Wake.Send()
	}
}

// Notice makes the goroutine in [Mux.Do] deliver notifications.
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

// Outcome returns whether and how the call has ended: with a response, or an error.
func (c *Call) Outcome() (r Response, err error, ended bool) {
	switch c.state.Load() {
	case settled:
		return c.response, nil, true
	case failed:
		return Response{}, c.err, true
	}
	return Response{}, nil, false
}

// from returns a reader of the response that reserves memory for what it reads.
func (c *Call) from(src io.Reader) io.Reader {
	if c == nil || c.In == nil {
		return src
	}
	return c.In.From(src)
}

// take reserves memory for a response of n bytes that has been read already.
func (c *Call) take(n int) error {
	if c.In == nil {
		return nil
	}
	return c.In.Take(n)
}

// Cancellation returns the notification that cancels the call, with the reason.
func (c *Call) Cancellation(why error) []byte {
	reason := "the client cancelled the request"
	if errors.Is(why, ErrTooLong) || errors.Is(why, context.DeadlineExceeded) {
		reason = "time-out"
	}
	return wire.AppendNotification(nil, spec.NotifyCancelled, wire.AppendEdited(nil, nil,
		wire.Edit{Name: "requestId", Value: wire.NumberID(c.ID).Append(nil)},
		wire.Edit{Name: "reason", Value: wire.Quote(reason)}), nil)
}
