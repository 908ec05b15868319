package front

import (
	"context"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// errCancelled is the cause with which a request ends that its client took back.
var errCancelled = errors.New("the client cancelled the request")

// A Conn serves one client over a connection that all its requests share: stdio, or
// a WebSocket. What belongs to which request is told by ids, so an id can be in
// flight once. Its methods are safe for concurrent use.
//
// Spec: 2026-07-28, basic/transports/stdio.
type Conn struct {
	// Set by OpenConn, read-only after.
	front  *Front
	write  func(msg []byte) error
	sender mcp.Sender

	requests downstream.InFlight[*connReply]
}

// OpenConn returns a Conn that serves sender. send sends one message, and keeps
// nothing of it; it is called for many requests at once, and must return in bounded
// time. After an error of send nobody can be answered: the caller closes the Conn.
func (f *Front) OpenConn(send func(msg []byte) error, sender mcp.Sender) *Conn {
	return &Conn{front: f, write: send, sender: sender}
}

// Serve takes one message whose envelope is modern, or which is not told to be of
// either era. It does not wait for a request to be served; but one that is refused at
// once, for too many are in flight or have its id, waits for its answer to be sent,
// so that who asks too much is read from no faster than it reads.
func (c *Conn) Serve(m *wire.Message) {
	switch m.Kind() {
	case wire.Request:
		c.serve(m)
	case wire.Notification:
		if m.Method != spec.NotifyCancelled || !c.Cancel(m) {
			c.front.drop("client notification")
		}
	case wire.Response:
		c.front.drop("client response") // nothing was asked
	}
}

// Cancel ends the request that a notifications/cancelled names, unanswered, and
// reports whether there is one: ids are compared as they were written.
//
// Spec: 2026-07-28, basic/patterns/cancellation.
func (c *Conn) Cancel(m *wire.Message) bool {
	id, err := wire.ParseID(wire.Get(m.Params, "requestId"))
	if err != nil {
		return false
	}
	r, ok := c.requests.Find(id)
	if !ok || !c.requests.Free(r) {
		return false
	}
	r.Cancel(errCancelled)
	return true
}

// Shutdown refuses further requests, ends listen streams with their result, and
// waits until the requests in flight are answered, or ctx ends.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Graceful Closure.
func (c *Conn) Shutdown(ctx context.Context) error {
	for _, r := range c.requests.Close() {
		r.endStream()
	}
	return c.requests.Wait(ctx)
}

// Close cancels what is in flight and waits for its end. Calls that wait for their
// client's answers go on waiting: the answers may come over another connection.
func (c *Conn) Close() {
	for _, r := range c.requests.Close() {
		r.Cancel(mcp.ErrShutdown)
	}
	_ = c.requests.Wait(context.Background()) // which does not end
}

func (c *Conn) serve(m *wire.Message) {
	ctx, cancel := context.WithCancelCause(context.Background())
	room := mcp.NewReservation(c.front.opts.Memory, c.sender.Share)
	r := &connReply{Call: downstream.Call{ID: m.ID, Cancel: cancel, Memory: room}, reply: reply{front: c.front, id: m.ID}, conn: c}
	r.writer = r
	former, err := c.admit(r, m)
	if err != nil {
		cancel(err)
		// Who can't be answered is found out by whoever reads from it.
		_ = c.write(wire.AppendError(nil, m.ID, mcp.WireError(err)))
		return
	}
	go r.run(ctx, m, former) // ends with its handler; Close cancels it, and waits
}

// admit takes memory for a request and counts it in, or refuses it. former is closed when
// the request that had the same id before has ended; it is nil if there is none.
func (c *Conn) admit(r *connReply, m *wire.Message) (former <-chan struct{}, err error) {
	former, err = c.requests.Enter(r, len(m.Text), c.front.opts.MaxInFlight)
	switch err {
	case downstream.ErrClosed:
		return nil, mcp.Refuse(spec.CodeInternal, "%v", mcp.ErrShutdown)
	case downstream.ErrSameID:
		return nil, mcp.Refuse(spec.CodeInvalidRequest, "a request with id %s is in flight on this connection; give each its own", r.ID)
	case downstream.ErrFull:
		c.front.limit("in_flight")
		c.front.opts.Logger.Warn("request refused: too many are in flight on its connection", "upstream", c.front.opts.Name, "limit", c.front.opts.MaxInFlight)
		return nil, mcp.RefuseForNow("%d requests are in flight on this connection, the limit; wait for some to end", c.front.opts.MaxInFlight)
	}
	return former, err
}
