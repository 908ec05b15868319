package back

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// request runs a request of the gateway's own. The result is the caller's.
func (s *wireSession) request(ctx context.Context, method string, params []byte) (json.RawMessage, error) {
	return s.roundTrip(ctx, &wireCall{method: method}, params)
}

// roundTrip sends the request c and returns the result, which is the caller's. The error
// is the server's as a *wire.Error, a *failure, or ctx's cause.
func (s *wireSession) roundTrip(ctx context.Context, c *wireCall, params []byte) (json.RawMessage, error) {
	ctx, err := s.begin(ctx, c)
	if err != nil {
		return nil, err
	}
	a, err := s.exchange(ctx, c, wire.AppendRequest(nil, wire.NumberID(c.id), c.method, params, nil))
	if err != nil {
		return nil, err
	}
	if a.err != nil {
		return nil, a.takeError()
	}
	defer a.free()
	return bytes.Clone(a.result), nil
}

// notify sends a notification and waits until it has left.
func (s *wireSession) notify(ctx context.Context, method string, params []byte) error {
	return s.link.send(ctx, wire.AppendNotification(nil, method, params, nil))
}

// begin registers c under an id of its own. The context it returns ends with ctx and
// with the session.
func (s *wireSession) begin(ctx context.Context, c *wireCall) (context.Context, error) {
	ctx, c.cancel = context.WithCancelCause(ctx)
	return ctx, s.enter(c)
}

// enter registers c, whose context c.cancel ends.
func (s *wireSession) enter(c *wireCall) error {
	if err := s.calls.add(c); err != nil {
		c.cancel(nil)
		return &failure{cause: err, fate: notSent, lost: true}
	}
	return nil
}

// exchange sends the request c and waits for its answer. Whoever gets an answer
// frees it.
func (s *wireSession) exchange(ctx context.Context, c *wireCall, frame []byte) (answer, error) {
	err := s.link.exchange(ctx, c, frame)
	if a, ok := c.settled(); ok {
		return s.finish(c, a), nil
	}
	return answer{}, s.abandon(ctx, c, err)
}

// finish ends a call that was answered. The answer returned has to be freed.
func (s *wireSession) finish(c *wireCall, a answer) answer {
	s.calls.remove(c)
	release := a.release
	a.release = func() {
		if release != nil {
			release()
		}
		c.in.Close()
		c.cancel(nil) // not earlier: a stream may have to be read to its end
	}
	return a
}

// abandon gives up on c, tells the server if the request may be running there,
// and returns why there is no answer.
//
// Spec: 2025-11-25, basic/utilities/cancellation.
func (s *wireSession) abandon(ctx context.Context, c *wireCall, err error) error {
	mayRun := mayBeRunning(ctx, err)
	cause := context.Cause(ctx)
	c.in.Close()
	s.calls.remove(c)
	c.cancel(nil)
	if f := asFailure(cause); f != nil {
		return f // the session went away
	}
	if f := asFailure(err); f != nil && f.lost || cause == nil {
		return err
	}
	if c.method != spec.MethodInitialize && mayRun {
		s.sendLater(ctx, wire.AppendNotification(nil, spec.NotifyCancelled, cancelledParams(c.id, cause), nil))
	}
	return cause
}

// mayBeRunning reports whether the server may be at work on a request that nobody waits
// for any more: ctx has ended, and err does not say otherwise.
func mayBeRunning(ctx context.Context, err error) bool {
	cause, f := context.Cause(ctx), asFailure(err)
	return asFailure(cause) == nil && cause != nil && (f == nil || !f.lost && f.fate == mayHaveRun)
}

func cancelledParams(id int64, cause error) []byte {
	reason := "the client cancelled the request"
	if cause == errTooLong || cause == context.DeadlineExceeded {
		reason = "time-out"
	}
	return wire.AppendEdited(nil, nil,
		wire.Edit{Name: "requestId", Value: wire.NumberID(id).Append(nil)},
		wire.Edit{Name: "reason", Value: wire.Quote(reason)})
}
