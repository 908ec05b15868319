package link

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// defaultRetry is the pause before a stream is resumed if the server sent no retry time.
const defaultRetry = time.Second

// A position is where the stream of a call ended before the response.
type position struct {
	lastID string // resume after this event; empty: impossible
	retry  time.Duration
	useful bool  // see pacer.after
	broken bool  // the stream was not closed properly
	why    error // the error of the call if the stream can't be resumed
}

// read reads a reply up to the response, which settles the call. If a stream ended before
// the response, position says where to resume it; otherwise it is nil.
func (h *streamable) read(ctx context.Context, c *Call, reply *upstream.Reply) (*position, error) {
	begun := time.Now()
	useful := false
	for {
		m, err := reply.Next()
		if err != nil {
			return h.ended(reply, c, err, useful || time.Since(begun) >= steady)
		}
		if m.Kind() == wire.Response {
			if reply.Continues() {
				reply.After = func(m *wire.Message) { h.l.inbox.Receive(ctx, m, &c.Call) } // changes, for example
			}
			if r := reply.Response(); !c.Settle(r) {
				r.Free() // the call was settled by another stream
			}
			return nil, nil
		}
		useful = true
		if !h.l.inbox.Receive(ctx, m, &c.Call) {
			reply.Useless()
		}
		if ctx.Err() != nil { // for example, settled by another stream
			reply.Close()
			return nil, context.Cause(ctx)
		}
	}
}

// ended returns what the end of a reply before the response means.
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

// resume resumes a stream that ended before the response, repeatedly, until the response
// arrives or ctx ends. The request is not sent again.
//
// Spec: 2025-11-25, basic/transports, Resumability and Redelivery.
func (h *streamable) resume(ctx context.Context, c *Call, at *position) error {
	var again pacer
	told := false
	for pause := again.after(at.retry, at.useful); ; {
		if at.lastID == "" {
			return at.why
		}
		if err := wake.Wait(ctx, wake.Jitter(pause)); err != nil {
			return err
		}
		next, err := h.reopen(ctx, c, at)
		if err != nil || next == nil {
			return err
		}
		if !told && errors.As(next.why, new(*upstream.CredentialError)) {
			told = true
			h.l.log.Warn("the response of a call can't be read on, since there is no credential for that; it is tried until there is one, or the time of the call is over", "method", c.Method, "error", transport.Cause(next.why))
		}
		if next.broken && next.lastID == at.lastID {
			pause = streamRetries.Next(pause)
		} else {
			pause = again.after(next.retry, next.useful)
		}
		at = next
	}
}

// reopen resumes a stream at a position and reads it. If the server can't be reached, or puts
// it off, it returns the same position.
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
			next.lastID = at.lastID // it had no new event
		}
		return next, err
	}
	reply.Discard()
	status := &upstream.StatusError{Code: reply.Status(), Note: "resuming the response"}
	f := &upstream.Failure{Cause: status, Fate: upstream.MayHaveRun}
	switch {
	case putsOffStream(status.Code):
		return at.failed(f), nil
	case status.Code == http.StatusNotFound && h.id() != "" && h.l.isLost(ctx, c.Method):
		h.l.fail(status)
		f.Lost = true
	default:
		f.Again = true
	}
	return nil, f
}

// failed returns the position after a failed attempt to resume.
func (p *position) failed(err error) *position {
	next := *p
	next.broken, next.why = true, &upstream.Failure{Cause: upstream.AsFailure(err).Cause, Fate: upstream.MayHaveRun, Again: true}
	return &next
}
