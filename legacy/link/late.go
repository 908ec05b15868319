package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// errNobodyWaits is why a request is given up long after its caller has left.
var errNobodyWaits = errors.New("the caller has left")

// An outcome is what came of a request.
type outcome struct {
	result json.RawMessage
	err    error
}

// RoundTripLate is RoundTrip for a request whose result must not get lost: if ctx ends first, the
// request is cancelled at the server, and a result that comes all the same within patience is passed
// to late, on another goroutine. On a connection a request of which nothing was written by then is
// withdrawn, and the server hears nothing of it.
func (l *Link) RoundTripLate(ctx context.Context, c *Call, params []byte, patience time.Duration, late func(result json.RawMessage)) (json.RawMessage, error) {
	own := c.Begin(context.WithoutCancel(ctx))
	if l.ordered {
		var withdraw context.CancelCauseFunc
		c.until, withdraw = context.WithCancelCause(own)
		defer context.AfterFunc(ctx, func() { withdraw(context.Cause(ctx)) })()
		c.Taken = make(chan struct{})
	}
	if err := l.Calls.Add(c); err != nil {
		c.Cancel(nil)
		return nil, err
	}
	frame := wire.AppendRequest(nil, wire.NumberID(c.ID), c.Method, params, nil)
	got := make(chan outcome, 1)
	if !l.Start(func() { got <- outcomeOf(own, l, c, frame) }) { // ends with the response, or with errNobodyWaits
		l.Calls.Remove(c)
		c.Cancel(nil)
		return nil, &upstream.Failure{Cause: mcp.ErrShutdown, Fate: upstream.NotSent, Lost: true}
	}
	select {
	case o := <-got:
		return o.result, o.err
	case <-ctx.Done():
	}
	if l.ordered {
		if <-c.Taken; c.Withdrawn { // known at once, since ctx has ended
			o := <-got
			return o.result, o.err
		}
	}
	c.Cancelled = l.SendLater(ctx, c.Cancellation(context.Cause(ctx)))
	l.Start(func() { // ends as the one above
		giveUp := time.AfterFunc(patience, func() { c.Cancel(errNobodyWaits) })
		defer giveUp.Stop()
		if o := <-got; o.err == nil {
			late(o.result)
		}
	})
	return nil, context.Cause(ctx)
}

// RequestLater is SendLater for a request of the session itself whose result nobody needs. Its
// response is awaited for sendTimeout.
func (l *Link) RequestLater(ctx context.Context, method string, params []byte) {
	c := &Call{Call: upstream.Call{Method: method}}
	l.Later(ctx, func(ctx context.Context) {
		if l.ordered { // as in SendLater
			ctx, c.awaited = context.WithoutCancel(ctx), sendTimeout
		}
		if _, err := l.RoundTrip(ctx, c, params); err != nil {
			l.log.Debug("sending to server", "method", method, "error", transport.Cause(err))
		}
	})
}

// outcomeOf sends a request that was added to the calls.
func outcomeOf(ctx context.Context, l *Link, c *Call, frame []byte) outcome {
	r, err := l.Exchange(ctx, c, frame)
	switch {
	case err != nil:
		return outcome{err: err}
	case r.Err != nil:
		return outcome{err: r.TakeError()}
	}
	defer r.Free()
	return outcome{result: bytes.Clone(r.Result)}
}
