package link

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// A conn is a session over a message connection. It ends with the connection.
type conn struct {
	alwaysListening
	mux  upstream.Mux
	done chan struct{} // closed when read has returned
}

// OverConn connects l over a message connection. l closes to.
func (l *Link) OverConn(ctx context.Context, to transport.Conn) {
	c := &conn{alwaysListening{l}, upstream.NewMux(l.inbox, to, l.lose), make(chan struct{})}
	l.carrier, l.ordered = c, true
	go c.read(context.WithoutCancel(ctx)) // ends with the connection, which close ends
}

func (c *conn) read(ctx context.Context) {
	defer close(c.done)
	c.mux.Run(ctx, c.l.done)
}

// do implements carrier.
func (c *conn) do(ctx context.Context, call *Call, frame []byte) error {
	err := c.mux.Send(cmp.Or(call.until, ctx), &call.Call, frame)
	call.Withdrawn = err != nil
	call.wasTaken()
	if err != nil {
		return err
	}
	if call.awaited > 0 {
		late := time.AfterFunc(call.awaited, func() { call.Cancel(context.DeadlineExceeded) })
		defer late.Stop()
	}
	return c.mux.Await(ctx, &call.Call)
}

// send implements carrier. A server that is busy may read the message much later.
func (c *conn) send(ctx context.Context, frame []byte) error {
	return transport.WriteUntil(ctx, c.mux.Conn, frame)
}

// endedBy implements carrier: if a write fails, the connection is unusable, unless the message
// was withdrawn. What the server has written before is read first.
func (c *conn) endedBy(err error) bool {
	return !errors.Is(err, transport.ErrUnwritten) && c.mux.ReadOut(context.Background(), err)
}

// explain implements carrier: a child process may have written the reason to its standard
// error.
func (c *conn) explain(err error) error { return transport.WithNoise(err, c.mux.Conn) }

// close implements carrier. The connection's Close lets a child process exit before it
// kills it.
func (c *conn) close(context.Context) {
	if err := c.mux.Conn.Close(); err != nil && !errors.Is(err, transport.ErrClosed) {
		c.l.log.Debug("closing connection to server", "error", err)
	}
	<-c.done
}

// alwaysListening has the methods of carriers on which the server can send at any time, and
// which have no header for the revision.
type alwaysListening struct{ l *Link }

func (a alwaysListening) useRevision(spec.Revision)    {}
func (a alwaysListening) listen(context.Context)       {}
func (a alwaysListening) initialized(context.Context)  {}
func (a alwaysListening) listening() (open, soon bool) { return a.l.Alive(), false }

var _ carrier = (*conn)(nil)
