package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// readOut is how long, after a write has failed, the connection is not given up while it may have
// answers: longer than a slow client holds up who reads it.
const readOut = 3 * time.Second

// A Mux carries many calls on one message connection: the standard streams of a child
// process, a WebSocket, or a pipe. Its methods except Run are safe for concurrent use.
type Mux struct {
	*Inbox
	Conn transport.Conn
	lost func(err error)
	read chan struct{} // closed when Run has ended
}

// NewMux returns a Mux of a connection. lost is called when that has ended, or a write has failed. It may
// be called more than once.
func NewMux(in *Inbox, conn transport.Conn, lost func(err error)) Mux {
	return Mux{Inbox: in, Conn: conn, lost: lost, read: make(chan struct{})}
}

// Run handles messages until the connection ends. done ends its pauses. It is called once.
func (m *Mux) Run(ctx context.Context, done <-chan struct{}) {
	defer close(m.read)
	throttle := Throttle{Busy: m.Calls.Busy, Done: done}
	for {
		text, err := m.Conn.Read()
		var long *transport.TooLongError
		switch {
		case err == nil:
			size := len(text)
			if !m.ReceiveText(ctx, text, true) {
				throttle.Message(size)
			}
		case errors.As(err, &long):
			m.TooLong(ctx, long)
		case errors.Is(err, transport.ErrClosed):
			m.lost(err)
			return
		default:
			m.lost(transport.Ending(m.Conn, err))
			return
		}
	}
}

// Do sends frame, the call c, which must be in Calls, and returns when c or ctx has ended.
// An error means that c has not ended; it is a [*Failure], or ctx's cause. The goroutine
// sends the notifications of c to its client, so that a slow client does not delay others.
func (m *Mux) Do(ctx context.Context, c *Call, frame []byte) error {
	if err := m.Send(ctx, c, frame); err != nil {
		return err
	}
	return m.Await(ctx, c)
}

// Await returns when c, which was sent, or ctx has ended. An error is ctx's cause.
func (m *Mux) Await(ctx context.Context, c *Call) error {
	for {
		select {
		case <-c.Wake:
			_, _, ended := c.Outcome()
			if c.Owner != nil {
				c.Owner.Deliver()
			}
			if ended {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Send sends frame, the call c. A server that is busy with another call may read it much later:
// Send waits until ctx ends, and c is withdrawn if nothing was written of it by then. If the
// write fails, the server has got a part of a message at most, so it has not run c. Other calls
// in flight may have run, and their answers may have come: the connection, which is not usable any
// more, is lost when they have been read.
func (m *Mux) Send(ctx context.Context, c *Call, frame []byte) error {
	if err := context.Cause(ctx); err != nil {
		return unsent(err)
	}
	err := transport.WriteUntil(ctx, m.Conn, frame)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, transport.ErrUnwritten):
		return unsent(cmp.Or(context.Cause(ctx), err)) // what ended it may be the connection's own
	}
	if how := transport.Exited(err); how != nil {
		err = how
	} else {
		err = fmt.Errorf("writing to it: %w", err)
	}
	m.Calls.Remove(c)
	if m.ReadOut(ctx, err) {
		m.lost(err)
	}
	return &Failure{Cause: err, Fate: NotSent, Lost: true}
}

// ReadOut waits, after a write has failed with err, until what the server has written is read. That comes
// to an end with the connection; a server that has only closed its input is given readOut. It reports
// false if ctx has ended before: then who writes or reads next finds out.
func (m *Mux) ReadOut(ctx context.Context, err error) bool {
	if errors.Is(err, transport.ErrClosed) { // on this side, which reads no more
		return true
	}
	late := time.NewTimer(readOut)
	defer late.Stop()
	select {
	case <-m.read:
	case <-late.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// unsent returns the failure of a call that ended, because of cause, before it was sent.
func unsent(cause error) *Failure {
	f := &Failure{Cause: cause, Fate: NotSent}
	if end := AsFailure(cause); end != nil && end.Lost { // with the connection
		f.Cause, f.Lost = end.Cause, true
	}
	return f
}
