package router

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/admission"
	"github.com/mcpbridge/mcpbridge/gateway/internal/sockets"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// socketSize is the memory of a WebSocket without its messages, in bytes: mostly buffers.
const socketSize = 8 << 10

// serveSocket upgrades the request to a WebSocket, and serves it as [Gateway.ServeConn] does.
// The principal of the request is that of all messages.
func (q *request) serveSocket() {
	if !q.takeRoom() {
		return
	}
	s, room := q.s, *q.room
	t, lent := s.g.now(), s.g.sockets.Lend(q.sender.Via)
	c, err := transport.AcceptWebSocket(q.w, q.r, transport.AcceptOptions{
		CheckOrigin: t.origins.Allow,
		Header:      openingHeader(lent.Name),
		WebSocketOptions: transport.WebSocketOptions{
			MaxMessage: int(t.bodies.Max), WriteTimeout: t.opts.WriteTimeout, KeepAlive: t.opts.KeepAlive,
			MessageTimeout: t.opts.BodyTimeout,
			Memory:         &arriving{mcp.NewReservation(s.memory, q.sender.Share)},
		},
	})
	if err != nil {
		lent.End()
		s.g.sockets.Release(q.sender.Share, nil)
		room.Release()
		s.failSocket(q.w, q.r, err)
		return
	}
	ctx, end := context.WithCancelCause(lent.Live)
	on := &socket{WebSocket: c, end: end}
	on.last.Store(time.Now().UnixNano())
	s.g.sockets.Add(q.sender.Share, on)
	q.sender.Arrival = arrivalBy("websocket", q.r, s.g)
	s.life.Hold()
	go s.runSocket(ctx, on, lent, q.sender, room) // ends with the connection, or with sockets.Wait
}

// arriving is the memory of a message on a WebSocket until it is complete; then the front of
// its era counts it.
type arriving struct{ mcp.Reservation }

// Grow implements [transport.Room]. Close frames have no header for the time.
func (a *arriving) Grow(n int) error {
	if a.Reservation.Grow(n) != nil {
		return errors.New(memoryUsedUp + "; connect again in 1 second")
	}
	return nil
}

// takeRoom takes the memory and the place of a WebSocket, once. It reports false if it has
// refused the request, because there is none.
func (q *request) takeRoom() bool {
	if q.room != nil {
		return true
	}
	yielded := false
	room, err := mcp.Reserve(q.s.memory, q.sender.Share, socketSize)
	if err == nil {
		yielded, err = q.s.g.sockets.Reserve(q.sender.Share)
	}
	if yielded {
		q.s.g.opts.Metrics.Limit(q.s.name, limits.WebSockets.Key)
		q.s.g.yielded.Warn(q.s.g.opts.Logger, "WebSocket ended: its client has the most, and one without any came", "upstream", q.s.name, "downstream", q.r.RemoteAddr, "key", limits.WebSockets.Key)
	}
	if err != nil {
		room.Release()
		q.s.refuseSocket(q.w, q.r, err)
		return false
	}
	q.room = &room
	return true
}

// lendRoom takes the room of a WebSocket that another replica may serve. give gives it back, with
// the WebSocket once it has ended, or nil if there is none.
func (q *request) lendRoom() (give func(sockets.Socket), ok bool) {
	if !q.takeRoom() {
		return nil, false
	}
	return func(c sockets.Socket) {
		q.s.g.sockets.Release(q.sender.Share, c)
		q.room.Release()
	}, true
}

// openingHeader tells another replica the name of what it has opened; nil without one.
func openingHeader(name string) http.Header {
	if name == "" {
		return nil
	}
	return http.Header{peer.Opening: {name}}
}

// refuseSocket answers a request for a WebSocket when there can't be another one.
func (s *server) refuseSocket(w http.ResponseWriter, r *http.Request, err error) {
	if f := (*sockets.LimitError)(nil); errors.As(err, &f) {
		s.g.opts.Metrics.Limit(s.name, f.Limit.Key)
		s.g.full.Warn(s.g.opts.Logger, "WebSocket refused: too many are open", "upstream", s.name, "downstream", r.RemoteAddr, "limit", f.Max, "key", f.Limit.Key)
	}
	refuseBusy(w, wire.Errorf(spec.CodeInternal, "%v", err))
}

// failSocket answers a failed handshake.
func (s *server) failSocket(w http.ResponseWriter, r *http.Request, err error) {
	var refused *transport.HandshakeError
	if !errors.As(err, &refused) {
		s.g.opts.Logger.Info("WebSocket lost during the handshake", "upstream", s.name, "downstream", r.RemoteAddr, "err", err)
		return
	}
	w.Header().Set("Sec-WebSocket-Version", "13") // RFC 6455, 4.4
	downstream.WriteError(w, refused.Status, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "%s", refused.Reason))
}

// runSocket serves a WebSocket until it ends.
func (s *server) runSocket(ctx context.Context, c *socket, lent sockets.Loan, sender mcp.Sender, room mcp.Reservation) {
	defer s.life.Leave()
	defer lent.End()
	defer room.Release()
	defer s.g.sockets.Release(sender.Share, c)
	s.g.opts.Metrics.Sockets(s.name, 1)
	defer s.g.opts.Metrics.Sockets(s.name, -1)
	begin, client := time.Now(), c.RemoteAddr().String()
	s.g.opts.Logger.Debug("WebSocket opened", "upstream", s.name, "downstream", client)
	defer c.end(nil)
	defer s.g.expiry.Until(sender.Identity, c.end)()
	err := s.serveConn(ctx, c, sender)
	if err == nil {
		err = cmp.Or(ownEnd(ctx), s.life.Reason(), mcp.ErrShutdown)
	}
	s.g.opts.Logger.Info("WebSocket closed", "upstream", s.name, "downstream", client, "open", time.Since(begin).Round(time.Millisecond), "reason", err, sender.Principal.Attr())
}

// ownEnd returns why the WebSocket alone ends that ctx is of; nil if it is not alone.
func ownEnd(ctx context.Context) error {
	if why := context.Cause(ctx); why == admission.ErrExpired || why == admission.ErrRefused || why == sockets.ErrYielded {
		return why
	}
	return nil
}

// A socket is a WebSocket whose close frame has a reason: the gateway's shutdown, that another
// client needs its place, or the end of the client's upstream session or credential.
type socket struct {
	*transport.WebSocket
	why atomic.Pointer[error] // nil: the gateway shuts down
	end context.CancelCauseFunc

	last   atomic.Int64               // when a message passed, in nanoseconds since 1970
	client atomic.Pointer[connection] // nil until it is served
}

// Yield implements [sockets.Socket].
func (c *socket) Yield() { c.end(sockets.ErrYielded) }

// Idle implements [sockets.Socket].
func (c *socket) Idle() (since time.Time, busy bool) {
	on := c.client.Load()
	return time.Unix(0, c.last.Load()), on != nil && (on.modern.Busy() || on.legacy.Busy())
}

// Read implements [transport.Conn].
func (c *socket) Read() ([]byte, error) {
	text, err := c.WebSocket.Read()
	c.last.Store(time.Now().UnixNano())
	return text, err
}

// Write implements [transport.Conn].
func (c *socket) Write(msg []byte) error {
	c.last.Store(time.Now().UnixNano())
	return c.WebSocket.Write(msg)
}

// setCloseReason implements [closeReasoner].
func (c *socket) setCloseReason(why error) { c.why.Store(&why) }

func (c *socket) Close() error {
	why := c.why.Load()
	over, replaced := (*sessionOver)(nil), (*replacedError)(nil)
	switch {
	case why != nil && (errors.As(*why, &over) || errors.As(*why, &replaced)):
		return c.End(transport.CloseRestart, (*why).Error())
	case why != nil && (*why == admission.ErrExpired || *why == admission.ErrRefused):
		return c.End(transport.CloseUnauthorized, (*why).Error()+"; connect again with another")
	case why != nil && *why == sockets.ErrYielded:
		return c.End(transport.CloseTryLater, (*why).Error()+"; close some, or "+limits.WebSockets.Raise()+", and connect again in 1 second")
	}
	return c.End(transport.CloseGoingAway, mcp.ErrShutdown.Error())
}
