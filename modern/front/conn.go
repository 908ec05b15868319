package front

import (
	"context"
	"errors"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// errCancelled is why a request ends that its client has cancelled.
var errCancelled = errors.New("the client cancelled the request")

// A Conn serves one client over a connection that all its requests share: stdio, or a
// WebSocket. Messages belong to requests by their ids, so an id can be in flight only
// once. Its methods are safe for concurrent use.
//
// Spec: 2026-07-28, basic/transports/stdio.
type Conn struct {
	// Set by OpenConn, read-only after.
	front  *Front
	write  func(msg []byte) error
	sender mcp.Sender

	requests downstream.InFlight[*connReply]
}

// OpenConn returns a Conn that serves sender. send sends one message and keeps nothing of
// it; it is called concurrently, and must return in bounded time. After an error of send,
// the caller closes the Conn.
func (f *Front) OpenConn(send func(msg []byte) error, sender mcp.Sender) *Conn {
	return &Conn{front: f, write: send, sender: sender}
}

// Serve handles one message with a modern envelope, or one whose era is unknown. It does
// not wait for a request to be served. If it refuses a request, because there are too many
// or the id is in use, it waits until the error is sent, so that the client is read no
// faster than it reads.
func (c *Conn) Serve(m *wire.Message) {
	switch m.Kind() {
	case wire.Request:
		c.serve(m)
	case wire.Notification:
		if m.Method != spec.NotifyCancelled || !c.Cancel(m) {
			c.front.drop("client notification")
		}
	case wire.Response:
		c.front.drop("client response") // there are no requests to clients
	}
}

// Cancel cancels the request that a notifications/cancelled names, without a response, and
// reports whether there is one. It compares ids as they were written.
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

// Busy reports whether requests are in flight, besides listen streams.
func (c *Conn) Busy() bool {
	return slices.ContainsFunc(c.requests.All(), func(r *connReply) bool { return r.stream.Load() == nil })
}

// Shutdown refuses further requests, ends listen streams with their result, and waits
// until the requests in flight have responses, or ctx ends.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Graceful Closure.
func (c *Conn) Shutdown(ctx context.Context) error {
	for _, r := range c.requests.Close() {
		r.endStream()
	}
	return c.requests.Wait(ctx)
}

// Close cancels all requests, and waits for their end. Parked calls continue to wait: the
// retry may arrive over another connection.
func (c *Conn) Close() {
	for _, r := range c.requests.Close() {
		r.Cancel(mcp.ErrShutdown)
	}
	_ = c.requests.Wait(context.Background()) // no error: the context does not end
}

func (c *Conn) serve(m *wire.Message) {
	ctx, cancel := context.WithCancelCause(context.Background())
	room := mcp.NewReservation(c.front.opts.Memory, c.sender.Share)
	r := &connReply{Call: downstream.Call{ID: m.ID, Cancel: cancel, Memory: room}, reply: reply{front: c.front, id: m.ID}, conn: c}
	r.writer = r
	former, err := c.enter(r, m)
	if err != nil {
		cancel(err)
		// An error is ignored: the goroutine that reads the connection notices it.
		_ = c.write(wire.AppendError(nil, m.ID, mcp.WireError(err)))
		return
	}
	go r.run(ctx, m, former) // ends with its handler; Close cancels it, and waits
}

// enter reserves memory for a request and registers it, or refuses it. former is closed
// when the previous request with the same id has ended; nil if there is none.
func (c *Conn) enter(r *connReply, m *wire.Message) (former <-chan struct{}, err error) {
	former, err = c.requests.Enter(r, len(m.Text), c.front.opts.MaxInFlight)
	switch err {
	case downstream.ErrClosed:
		return nil, mcp.Refuse(spec.CodeInternal, "%v", mcp.ErrShutdown)
	case downstream.ErrSameID:
		return nil, mcp.Refuse(spec.CodeInvalidRequest, "a request with the id %s is in flight on this connection; use another id", r.ID)
	case downstream.ErrFull:
		c.front.limits.Hit("in_flight", "request refused: too many are in flight on its connection", "limit", c.front.opts.MaxInFlight)
		return nil, mcp.RefuseForNow("%d requests are in flight on this connection, the limit; wait for some to end", c.front.opts.MaxInFlight)
	}
	return former, err
}
