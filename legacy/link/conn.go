package link

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// A conn is a session over one connection of messages: a child process's standard
// streams, a WebSocket, a pipe. The connection's end is the session's.
type conn struct {
	alwaysListening
	conn transport.Conn
	done chan struct{} // closed when read has returned
}

// OverConn connects l by a connection of messages, which it closes.
func (l *Link) OverConn(ctx context.Context, to transport.Conn) {
	c := &conn{alwaysListening{l}, to, make(chan struct{})}
	l.carrier, l.ordered = c, true
	go c.read(context.WithoutCancel(ctx)) // ends with the connection, which close ends
}

// read hands every message to the Link until the connection ends.
func (c *conn) read(ctx context.Context) {
	defer close(c.done)
	throttle := c.l.throttle()
	for {
		text, err := c.conn.Read()
		var long *transport.TooLongError
		switch {
		case err == nil:
			size := len(text)
			if !c.l.receiveText(ctx, text, func() { transport.PutBuffer(text) }) {
				throttle.Message(size)
			}
		case errors.As(err, &long):
			c.l.tooLong(ctx, long)
		default:
			c.l.lose(transport.Ending(c.conn, err))
			return
		}
	}
}

// do implements carrier.
func (c *conn) do(ctx context.Context, call *Call, frame []byte) error {
	if err := context.Cause(ctx); err != nil {
		return &upstream.Failure{Cause: err, Fate: upstream.NotSent}
	}
	if err := c.conn.Write(frame); err != nil {
		return c.writeFailed(call, err)
	}
	for {
		select {
		case <-call.Wake:
			call.Owner.Deliver()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// writeFailed says what a failed Write means for a call: half a line reached nobody.
// The others in flight may have run; a connection that takes no more is of no
// use to them either.
func (c *conn) writeFailed(call *Call, err error) error {
	if how := transport.Exited(err); how != nil {
		err = how
	} else {
		err = fmt.Errorf("writing to it: %w", err)
	}
	c.l.Calls.Remove(call)
	c.l.lose(err)
	return &upstream.Failure{Cause: err, Fate: upstream.NotSent, Lost: true}
}

// send implements carrier. Write is bounded by the connection itself.
func (c *conn) send(_ context.Context, frame []byte) error { return c.conn.Write(frame) }

// endedBy implements carrier: a connection that takes no more is of no use.
func (c *conn) endedBy(error) bool { return true }

// explain implements carrier: a child may have said why on its standard error.
func (c *conn) explain(err error) error { return transport.WithNoise(err, c.conn) }

// close implements carrier. A connection's Close is polite by itself: it lets a
// child exit before it kills it.
func (c *conn) close(context.Context) {
	if err := c.conn.Close(); err != nil && !errors.Is(err, transport.ErrClosed) {
		c.l.log.Debug("closing connection to server", "error", err)
	}
	<-c.done
}

// alwaysListening is what carriers have in common on which the server can send unasked
// from the first, and which name no revision.
type alwaysListening struct{ l *Link }

func (a alwaysListening) useRevision(spec.Revision)   {}
func (a alwaysListening) listen(context.Context)      {}
func (a alwaysListening) initialized(context.Context) {}
func (a alwaysListening) listening() bool             { return a.l.Alive() }

var _ carrier = (*conn)(nil)
