package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
	modernfront "github.com/mcpbridge/mcpbridge/modern/front"
)

// DefaultDrain is how long the calls of a closing connection may take to end.
const DefaultDrain = 5 * time.Second

// closeTime bounds the time for sending clients the errors of calls that were cut off. The
// gateway does not wait longer for a client that does not read.
const closeTime = 200 * time.Millisecond

// A connection serves one client over a connection of messages.
type connection struct {
	s      *server
	conn   transport.Conn
	modern *modernfront.Conn
	legacy *legacyfront.Conn
	lose   context.CancelCauseFunc // called with the reason once the client is unreachable
}

// ServeConn serves one client over a connection of messages, and closes it. server is a
// server's name; empty means the one that needs no name. The envelope of each message decides its
// era, independently of earlier messages: clients probe, and then initialize on the same
// connection.
//
// It returns when the connection has ended. When the client has no more to send (io.EOF),
// or ctx ends, listen streams end with their result and calls in flight may take
// [Options.Drain] to end; then ServeConn returns nil. When the connection is lost, calls
// are cancelled immediately, and ServeConn returns the reason. A connection also counts as
// lost if the client does not read, if its upstream session has ended, or if it is a legacy one whose
// server has another era by now.
//
// Spec: 2026-07-28, basic/transports/stdio; basic/versioning, Backward Compatibility
// with Initialization-Based Versions.
func (g *Gateway) ServeConn(ctx context.Context, conn transport.Conn, server string) error {
	t := g.now()
	s := t.servers[server]
	if server == "" {
		s = t.unnamed()
	}
	if s == nil {
		return errors.Join(t.unknownServer(server), conn.Close())
	}
	s.life.Hold()
	defer s.life.Leave()
	return s.serveConn(ctx, conn, mcp.Sender{Share: mcp.Share{Principal: mcp.Anonymous}, Arrival: &trace.Arrival{}})
}

func (s *server) serveConn(ctx context.Context, conn transport.Conn, sender mcp.Sender) error {
	reachable, lose := context.WithCancelCause(context.Background())
	defer lose(nil)
	c := &connection{s: s, conn: conn, lose: lose}
	c.modern = s.modern.OpenConn(c.send, sender)
	c.legacy = s.legacy.OpenConn(c.send, sender)
	if on, ok := conn.(*socket); ok {
		on.client.Store(c)
	}
	read := make(chan struct{})
	go c.read(read) // ends with the connection
	select {
	case <-read:
	case <-ctx.Done():
		c.setCloseReason(context.Cause(ctx))
	case <-c.legacy.Lost():
		over := &sessionOver{s.name}
		c.setCloseReason(over)
		lose(over)
	case <-s.life.Over():
		c.setCloseReason(s.life.Reason())
	case <-reachable.Done():
	}
	c.drain(reachable)
	err := context.Cause(reachable)
	_ = conn.Close() // an error here doesn't matter: the client is gone
	<-read
	return err
}

// A sessionOver is the reason for closing a connection whose own upstream session has ended.
type sessionOver struct{ server string }

func (e *sessionOver) Error() string {
	return fmt.Sprintf("server %q ended the session of this client; connect again", e.server)
}

// A closeReasoner is a connection that can tell its client why it is closed.
type closeReasoner interface{ setCloseReason(why error) }

func (c *connection) setCloseReason(why error) {
	if m, ok := c.conn.(closeReasoner); ok {
		m.setCloseReason(why)
	}
}

// drain ends the requests in flight, in order. It reserves the end of its time for sending
// the errors of requests that were cut off.
func (c *connection) drain(reachable context.Context) {
	patience := c.s.opts.Drain
	ctx, cancel := context.WithTimeout(reachable, patience-min(closeTime, patience/4))
	defer cancel()
	rest := time.Duration(0)
	if c.settle(ctx) || errors.As(context.Cause(reachable), new(*sessionOver)) { // the client reads
		deadline, _ := ctx.Deadline()
		rest = time.Until(deadline) // for responses that are being written
	}
	late := time.AfterFunc(rest+closeTime, func() { _ = c.conn.Close() })
	defer late.Stop()
	c.modern.Close()
	c.legacy.Close()
}

// settle makes both eras refuse further requests, and reports whether those in flight
// ended before ctx.
func (c *connection) settle(ctx context.Context) bool {
	legacy := make(chan error, 1)
	go func() { legacy <- c.legacy.Shutdown(ctx) }() // ends with ctx
	modern := c.modern.Shutdown(ctx)
	return <-legacy == nil && modern == nil
}

// send sends one message. If that fails, the connection is lost.
func (c *connection) send(msg []byte) error {
	err := c.conn.Write(msg)
	if err != nil {
		c.lose(fmt.Errorf("sending to the client: %w", err))
	}
	return err
}

// read reads the client's messages until the connection ends.
func (c *connection) read(done chan<- struct{}) {
	defer close(done)
	for {
		text, err := c.conn.Read()
		switch tooLong := (*transport.TooLongError)(nil); {
		case err == nil:
			c.receive(text)
		case errors.As(err, &tooLong):
			c.refuseTooLong(tooLong)
		case errors.Is(err, io.EOF):
			return
		default:
			if errors.Is(err, transport.ErrSlow) {
				c.reportSlow()
			}
			c.lose(fmt.Errorf("receiving from the client: %w", err))
			return
		}
	}
}

func (c *connection) reportSlow() {
	c.s.limits.Hit("body_timeout", "connection closed: a message arrived too slowly", "limit", c.s.g.now().opts.BodyTimeout)
}

// receive handles one message, or a batch.
func (c *connection) receive(text []byte) {
	m, err := c.s.parse(text)
	var tooLong *mcp.TooLongError
	switch envelope := (*wire.EnvelopeError)(nil); {
	case errors.As(err, &tooLong):
		c.refuse(m.ID, tooLong.Wire())
	case err == nil:
		c.route(&m)
	case errors.As(err, &envelope) && wire.IsArray(text):
		c.batch(text)
	default:
		c.refuse(m.ID, parseError(err))
	}
}

// batch handles a batch, which only legacy revisions have.
func (c *connection) batch(text []byte) {
	if c.s.eraOfBatch(text, c.claim()) == spec.Modern {
		c.refuse(wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "revision %s has no batches; send each message by itself", spec.Rev20260728))
		return
	}
	c.legacy.ServeBatch(text)
}

// claim returns what tells of the era of a message beside it: whether the client has a session.
func (c *connection) claim() claim { return claim{session: c.legacy.InSession()} }

// route passes a message to the front of its era. A cancellation without an envelope
// belongs to the era of the request that it names.
func (c *connection) route(m *wire.Message) {
	switch {
	case c.s.eraOf(m, c.claim()) == spec.Modern:
		c.modern.Serve(m)
	case m.Method == spec.NotifyCancelled && c.modern.Cancel(m):
	default:
		c.legacy.Serve(m)
	}
}

func (c *connection) refuseTooLong(e *transport.TooLongError) {
	c.s.limits.Hit(limits.Body.Key, "message refused: too large", "limit", e.Limit)
	why := wire.Errorf(spec.CodeInvalidRequest, "the message is over %d bytes; send less, or %s", e.Limit, limits.Body.Raise())
	c.refuse(c.legacy.Unread(e.Start, e.End, why), why)
}

func (c *connection) refuse(id wire.ID, e *wire.Error) {
	_ = c.send(wire.AppendError(nil, id, e)) // if it fails, send calls lose
}
