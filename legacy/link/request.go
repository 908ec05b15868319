package link

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Request sends a request of the session itself. The caller owns the result.
func (l *Link) Request(ctx context.Context, method string, params []byte) (json.RawMessage, error) {
	return l.RoundTrip(ctx, &Call{Call: upstream.Call{Method: method}}, params)
}

// RoundTrip sends the request c and returns the result, which the caller owns. The error is
// the server's as a [*wire.Error], an [*upstream.Failure], or ctx's cause.
func (l *Link) RoundTrip(ctx context.Context, c *Call, params []byte) (json.RawMessage, error) {
	ctx = c.Begin(ctx)
	if err := l.Calls.Add(c); err != nil {
		c.Cancel(nil)
		return nil, err
	}
	o := outcomeOf(ctx, l, c, wire.AppendRequest(nil, wire.NumberID(c.ID), c.Method, params, nil))
	return o.result, o.err
}

// Exchange sends c, a request of the gateway's own, and waits for its response. The caller
// must free the response.
func (l *Link) Exchange(ctx context.Context, c *Call, frame []byte) (r upstream.Response, err error) {
	l.opts.ObserveOwn(&c.Call, spec.Legacy, "")
	defer func() { c.EndOwn(&r, err) }()
	err = l.Do(ctx, c, frame)
	if settled, ok := c.Settled(); ok {
		return l.Calls.Finish(c, settled), nil
	}
	why := l.Abandon(ctx, c, err)
	if errors.As(why, new(*upstream.UnreadableError)) || errors.As(why, new(*transport.TooLongError)) { // there was one
		return upstream.Response{Err: mcp.WireError(l.opts.ClientError(c.Method, why))}, nil
	}
	return upstream.Response{}, why
}

// Notify sends a notification and returns when it has been sent.
func (l *Link) Notify(ctx context.Context, method string, params []byte) error {
	return l.Send(ctx, wire.AppendNotification(nil, method, params, nil))
}

// Tell is Notify in an open session. If the server does not take the notification, it is asked by a
// ping whether it still has the session, which otherwise ends: the error alone does not tell, see
// [Link.rejected].
func (l *Link) Tell(ctx context.Context, method string, params []byte) error {
	err := l.Notify(ctx, method, params)
	if err != nil {
		l.isLost(ctx, method)
	}
	return err
}

// Abandon ends a call without a response. It cancels the request at the server if that may
// be running it, and returns why there is no response. err is Do's, and ctx the call's.
//
// Spec: 2025-11-25, basic/utilities/cancellation.
func (l *Link) Abandon(ctx context.Context, c *Call, err error) error {
	mayRun := MayBeRunning(ctx, err)
	cause := context.Cause(ctx)
	c.closeIntake()
	l.Calls.Remove(c)
	c.Cancel(nil)
	f := upstream.AsFailure(err)
	if ended := upstream.AsFailure(cause); ended != nil { // the session has ended
		if f != nil && f.Fate == upstream.NotSent { // and did not know of the call
			return &upstream.Failure{Cause: ended.Cause, Fate: upstream.NotSent, Lost: ended.Lost}
		}
		return ended
	}
	if f != nil && f.Lost || cause == nil {
		return err
	}
	if c.Method != spec.MethodInitialize && mayRun {
		c.Cancelled = l.SendLater(ctx, c.Cancellation(cause))
	}
	return cause
}

// MayBeRunning reports whether the server may still run a request whose context, ctx, has
// ended, if Do returned err.
func MayBeRunning(ctx context.Context, err error) bool {
	cause, f := context.Cause(ctx), upstream.AsFailure(err)
	return cause != nil && upstream.AsFailure(cause) == nil && (f == nil || !f.Lost && f.Fate == upstream.MayHaveRun)
}
