package link

import (
	"context"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// A conn is a session over one connection of messages. The connection's end is the
// session's.
type conn struct {
	alwaysListening
	mux  upstream.Mux
	done chan struct{} // closed when read has returned
}

// OverConn connects l by a connection of messages, which it closes.
func (l *Link) OverConn(ctx context.Context, to transport.Conn) {
	c := &conn{alwaysListening{l}, upstream.Mux{Inbox: l.inbox, Conn: to, Lost: l.lose}, make(chan struct{})}
	l.carrier, l.ordered = c, true
	go c.read(context.WithoutCancel(ctx)) // ends with the connection, which close ends
}

func (c *conn) read(ctx context.Context) {
	defer close(c.done)
	c.mux.Run(ctx, c.l.done)
}

// do implements carrier.
func (c *conn) do(ctx context.Context, call *Call, frame []byte) error {
	return c.mux.Do(ctx, &call.Call, frame)
}

// send implements carrier. Write is bounded by the connection itself.
func (c *conn) send(_ context.Context, frame []byte) error { return c.mux.Conn.Write(frame) }

// endedBy implements carrier: a connection that takes no more is of no use.
func (c *conn) endedBy(error) bool { return true }

// explain implements carrier: a child may have said why on its standard error.
func (c *conn) explain(err error) error { return transport.WithNoise(err, c.mux.Conn) }

// close implements carrier. A connection's Close is polite by itself: it lets a
// child exit before it kills it.
func (c *conn) close(context.Context) {
	if err := c.mux.Conn.Close(); err != nil && !errors.Is(err, transport.ErrClosed) {
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
