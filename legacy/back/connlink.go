package back

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A connLink is a session over one connection of messages: a child process's
// standard streams, a WebSocket, a pipe. The connection's end is the session's.
type connLink struct {
	s      *wireSession
	conn   transport.Conn
	done   chan struct{}   // closed when read has returned
	closed <-chan struct{} // the session's gone
}

// newConnLink starts to read conn for s, until conn ends or close closes it.
func newConnLink(ctx context.Context, s *wireSession, conn transport.Conn) *connLink {
	l := &connLink{s: s, conn: conn, done: make(chan struct{}), closed: s.gone}
	s.link = l
	go l.read(context.WithoutCancel(ctx))
	return l
}

// read hands every message to the session until the connection ends.
func (l *connLink) read(ctx context.Context) {
	defer close(l.done)
	ration := l.s.ration()
	for {
		text, err := l.conn.Read()
		var long *transport.TooLongError
		switch {
		case err == nil:
			l.s.receiveRationed(ctx, ration, text, nil, func() { transport.PutBuffer(text) })
		case errors.As(err, &long):
			l.s.tooLong(ctx, long)
		default:
			err = transport.Ending(l.conn, err)
			l.s.lost(err)
			return
		}
	}
}

// exchange implements link. Its goroutine gives the notes of c to the caller, so
// that a slow caller holds up nobody else.
func (l *connLink) exchange(ctx context.Context, c *wireCall, frame []byte) error {
	if err := context.Cause(ctx); err != nil {
		return &failure{cause: err, fate: notSent}
	}
	if err := l.conn.Write(frame); err != nil {
		return l.writeFailed(c, err)
	}
	for {
		select {
		case <-c.wake:
			c.owner.deliver()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// writeFailed says what a failed Write means for c: half a line reached nobody.
// The others under way may have run; a connection that takes no more is of no
// use to them either.
func (l *connLink) writeFailed(c *wireCall, err error) error {
	if how := transport.Exited(err); how != nil {
		err = how
	} else {
		err = fmt.Errorf("writing to it: %w", err)
	}
	l.s.calls.remove(c)
	l.s.lost(err)
	return &failure{cause: err, fate: notSent, lost: true}
}

// send implements link. Write is bounded by the connection itself.
func (l *connLink) send(_ context.Context, frame []byte) error { return l.conn.Write(frame) }

func (l *connLink) negotiated(spec.Revision) {}

// A connection is open both ways from the first.
func (l *connLink) listen(context.Context)      {}
func (l *connLink) initialized(context.Context) {}
func (l *connLink) wakes() bool                 { return true }

func (l *connLink) open() bool { return l.s.alive() }

// close implements link. A connection's Close is polite by itself: it lets a
// child exit before it makes it.
func (l *connLink) close(context.Context) {
	if err := l.conn.Close(); err != nil && !errors.Is(err, transport.ErrClosed) {
		l.s.log.Debug("closing connection to server", "error", err)
	}
	<-l.done
}

// tooLong fails the call that a message beyond the limit answers, or refuses the
// question that it is, as far as its beginning tells; otherwise it is skipped.
func (s *wireSession) tooLong(ctx context.Context, e *transport.TooLongError) {
	s.beyondLimit(e.Limit)
	id, isQuestion := wire.LeadingID(e.Start)
	if isQuestion {
		s.sendLater(ctx, wire.AppendError(nil, id, wire.Errorf(spec.CodeInternal, "the request is of more than %d bytes, the limit; send less", e.Limit)))
		return
	}
	if c := s.calls.find(id); c != nil {
		err := wire.Errorf(spec.CodeInternal, "server %q answered %s with more than %d bytes; %s if that is normal for it",
			s.opts.Name, c.method, e.Limit, limits.UpstreamMessage.Raise())
		if c.settle(answer{err: err}) {
			c.cancel(errAnswered)
		}
	}
}

// beyondLimit counts and tells of a message that is not read.
func (s *wireSession) beyondLimit(limit int) {
	s.drop("too long")
	s.opts.Metrics.Limit(s.opts.Name, limits.UpstreamMessage.Key)
	s.log.Warn("skipping message of server beyond the limit", "bytes", limit)
}

var _ link = (*connLink)(nil)

// An unconnected says that a connection could not be opened, or a command not be
// started.
type unconnected struct{ err error }

func (e *unconnected) Error() string { return "connecting to it: " + e.err.Error() }

// Unwrap returns why.
func (e *unconnected) Unwrap() error { return e.err }

// linkConn opens a connection for s that outlives ctx's end, within the time ctx has.
func (b *Back) linkConn(ctx context.Context, s *wireSession) error {
	start := time.Now()
	conn, err := b.opts.Dial(ctx)
	if err != nil {
		return &unconnected{err}
	}
	b.log.Debug("connected", "took", time.Since(start))
	newConnLink(ctx, s, conn)
	return nil
}
