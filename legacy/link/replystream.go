package link

import (
	"context"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// defaultRetry is the wait before a stream is resumed whose server named none.
const defaultRetry = time.Second

// A position is where the stream of a call ended before the response.
type position struct {
	lastID string // resume behind this event; empty: impossible
	retry  time.Duration
	useful bool  // see pacer.after
	broken bool  // it did not end regularly
	why    error // what becomes of the call if the stream can't be resumed
}

// read reads a reply up to the response, which settles the call. If it is a stream that
// ended before, the position tells where to resume; otherwise it is nil.
func (h *streamable) read(ctx context.Context, c *Call, reply *upstream.Reply) (*position, error) {
	begun := time.Now()
	useful := false
	for {
		m, err := reply.Next()
		if err != nil {
			return h.ended(reply, c, err, useful || time.Since(begun) >= steady)
		}
		if m.Kind() == wire.Response {
			if reply.IsStream() {
				reply.After = func(m *wire.Message) { h.l.inbox.Receive(ctx, m, &c.Call) } // changes, maybe
			}
			if r := reply.Response(); !c.Settle(r) {
				reply.Close() // answered elsewhere meanwhile
			}
			return nil, nil
		}
		useful = true
		if !h.l.inbox.Receive(ctx, m, &c.Call) {
			reply.Useless()
		}
		if ctx.Err() != nil { // answered on another stream, say
			reply.Close()
			return nil, context.Cause(ctx)
		}
	}
}

// ended tells what the end of a reply before the response means.
func (h *streamable) ended(reply *upstream.Reply, c *Call, err error, useful bool) (*position, error) {
	f := upstream.AsFailure(err)
	if f == nil || !f.Again || !reply.IsStream() {
		return nil, err
	}
	at := &position{lastID: reply.EventID(), retry: defaultRetry, useful: useful, broken: f.Cause != upstream.ErrUnanswered, why: err}
	if d, ok := reply.Retry(); ok {
		at.retry = d
	}
	return at, nil
}

// resume goes on with a stream that ended at a position before the response, again
// and again, until the response or the end of ctx. The request is not sent anew.
//
// Spec: 2025-11-25, basic/transports, Resumability and Redelivery.
func (h *streamable) resume(ctx context.Context, c *Call, at *position) error {
	var again pacer
	for pause := again.after(at.retry, at.useful); ; {
		if at.lastID == "" {
			return at.why
		}
		if err := backoff.Wait(ctx, backoff.Jitter(pause)); err != nil {
			return err
		}
		next, err := h.reopen(ctx, c, at)
		if err != nil || next == nil {
			return err
		}
		if next.broken && next.lastID == at.lastID {
			pause = streamRetries.Next(pause)
		} else {
			pause = again.after(next.retry, next.useful)
		}
		at = next
	}
}

// reopen asks for a stream behind a position and reads it. A server that can't
// be reached leaves the position where it was.
func (h *streamable) reopen(ctx context.Context, c *Call, at *position) (*position, error) {
	reply, err := h.e.http.Get(ctx, &c.Call, resuming(h.names.Load().get, at.lastID))
	switch {
	case ctx.Err() != nil:
		if err == nil {
			reply.Discard()
		}
		return nil, context.Cause(ctx)
	case err != nil:
		return at.failed(err), nil
	case reply.Status() == http.StatusOK && reply.IsStream():
		next, err := h.read(ctx, c, reply)
		if next != nil && next.lastID == "" {
			next.lastID = at.lastID // it said nothing new
		}
		return next, err
	}
	reply.Discard()
	status := &upstream.StatusError{Code: reply.Status(), Note: "resuming the response"}
	f := &upstream.Failure{Cause: status, Fate: upstream.MayHaveRun}
	switch {
	case status.Code >= 500:
		return at.failed(f), nil
	case status.Code == http.StatusNotFound && h.id() != "" && h.l.isLost(ctx, c.Method):
		h.l.fail(status)
		f.Lost = true
	default:
		f.Again = true
	}
	return nil, f
}

// failed returns the position after an attempt to resume that brought nothing.
func (p *position) failed(err error) *position {
	next := *p
	next.broken, next.why = true, &upstream.Failure{Cause: upstream.AsFailure(err).Cause, Fate: upstream.MayHaveRun, Again: true}
	return &next
}
