package upstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A Mux carries many calls on one connection of messages: the standard streams of a child
// process, a WebSocket, a pipe. Its methods but Run are safe for concurrent use.
type Mux struct {
	*Inbox
	Conn transport.Conn
	// Lost is called when the connection has ended: by itself, or since it takes no more
	// messages. It may be called again.
	Lost func(err error)
}

// Run takes every message until the connection ends. done ends its pauses.
func (m *Mux) Run(ctx context.Context, done <-chan struct{}) {
	throttle := transport.Throttle{Busy: m.Calls.Busy, Done: done}
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
			m.Lost(err)
			return
		default:
			m.Lost(transport.Ending(m.Conn, err))
			return
		}
	}
}

// Do sends frame, the call c, which is among the Calls, and returns when c has ended, or
// ctx has. The error, which says that c has not ended, is a [*Failure], or ctx's cause. The
// goroutine gives the notifications of c to its client, so that a slow client holds up
// nobody else.
func (m *Mux) Do(ctx context.Context, c *Call, frame []byte) error {
	if err := context.Cause(ctx); err != nil {
		return &Failure{Cause: err, Fate: NotSent}
	}
	if err := m.Send(c, frame); err != nil {
		return err
	}
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

// Send sends frame, the call c. If that fails half a line reached nobody. The other calls
// in flight may have run; a connection that takes no more is of no use to them either.
func (m *Mux) Send(c *Call, frame []byte) error {
	err := m.Conn.Write(frame)
	if err == nil {
		return nil
	}
	if how := transport.Exited(err); how != nil {
		err = how
	} else {
		err = fmt.Errorf("writing to it: %w", err)
	}
	m.Calls.Remove(c)
	m.Lost(err)
	return &Failure{Cause: err, Fate: NotSent, Lost: true}
}
