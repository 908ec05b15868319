package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/expiry"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// socketSize is what a WebSocket takes beside its messages, in bytes: buffers, mostly.
const socketSize = 8 << 10

// sockets are the WebSockets of all servers' clients. net/http forgets a connection
// that is taken over from it, so they are the gateway's to end.
type sockets struct {
	// Set by newSockets, read-only after.
	live   context.Context // ends with the first stop
	cancel context.CancelFunc

	running sync.WaitGroup // what serves them

	// mu guards the fields below. It is held for map work only.
	mu      sync.Mutex
	open    map[*transport.WebSocket]struct{}
	places  downstream.Places // of those that are about to be opened, too
	stopped bool
}

func newSockets(opts Options) *sockets {
	s := &sockets{open: make(map[*transport.WebSocket]struct{}), places: downstream.Places{
		All: limits.WebSockets, Max: opts.MaxSockets, Each: limits.WebSocketsEach, MaxEach: opts.MaxSocketsEach,
	}}
	s.live, s.cancel = context.WithCancel(context.Background())
	return s
}

// A socketLimitError says which bound on WebSockets is reached.
type socketLimitError struct {
	limit *limits.Limit
	n     int
}

func (e *socketLimitError) Error() string {
	return fmt.Sprintf("%d WebSockets are open, the limit; close some, or %s", e.n, e.limit.Raise())
}

// reserve takes a place for a WebSocket of a share, which is given back by leave. It
// returns mcp.ErrShutdown or a [*socketLimitError].
func (s *sockets) reserve(share mcp.Share) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return mcp.ErrShutdown
	}
	if limit, most := s.places.Full(share); limit != nil {
		return &socketLimitError{limit, most}
	}
	s.places.Take(share)
	s.running.Add(1)
	return nil
}

// add notes a WebSocket that has a place.
func (s *sockets) add(c *transport.WebSocket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = struct{}{}
}

// release gives a place back. c may be nil.
func (s *sockets) release(share mcp.Share, c *transport.WebSocket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	s.places.Give(share)
	s.running.Done()
}

// stop has no WebSocket opened any more, and those that are open end in order.
func (s *sockets) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.cancel()
}

// wait waits until all have ended, and cuts them off when ctx ends.
func (s *sockets) wait(ctx context.Context) error {
	return downstream.Join(ctx, &s.running, s.cut)
}

// cut ends those that are open, and returns their number.
func (s *sockets) cut() int {
	s.mu.Lock()
	open := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	var cuts sync.WaitGroup
	for _, c := range open {
		cuts.Go(func() { _ = (&socket{WebSocket: c}).Close() }) // who serves it hears of it
	}
	cuts.Wait()
	return len(open)
}

func (s *sockets) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// serveSocket makes a WebSocket of a request, and has it served as [Gateway.ServeConn]
// does. Whose requests they are is decided by this one.
func (g *Gateway) serveSocket(w http.ResponseWriter, r *http.Request, s *server, sender mcp.Sender) {
	share := sender.Share
	room, err := mcp.Reserve(s.memory, share, socketSize)
	if err == nil {
		err = g.sockets.reserve(share)
	}
	if err != nil {
		room.Release()
		s.refuseSocket(w, r, err)
		return
	}
	c, err := transport.AcceptWebSocket(w, r, transport.AcceptOptions{
		CheckOrigin: g.origins.allow,
		WebSocketOptions: transport.WebSocketOptions{
			MaxMessage: int(g.opts.MaxBody), WriteTimeout: g.opts.WriteTimeout, KeepAlive: g.opts.KeepAlive,
			MessageTimeout: g.opts.BodyTimeout,
		},
	})
	if err != nil {
		g.sockets.release(share, nil)
		room.Release()
		s.failSocket(w, r, err)
		return
	}
	g.sockets.add(c)
	go s.runSocket(c, sender, room) // ends with the connection, or with sockets.wait
}

// refuseSocket answers who asks for a WebSocket when there can't be one more.
func (s *server) refuseSocket(w http.ResponseWriter, r *http.Request, err error) {
	if f := (*socketLimitError)(nil); errors.As(err, &f) {
		s.g.opts.Metrics.Limit(s.name, f.limit.Key)
		s.g.opts.Logger.Warn("WebSocket refused: too many are open", "upstream", s.name, "downstream", r.RemoteAddr, "limit", f.n)
	}
	refuseBusy(w, wire.Errorf(spec.CodeInternal, "%v", err))
}

// failSocket answers a handshake that is none.
func (s *server) failSocket(w http.ResponseWriter, r *http.Request, err error) {
	var refused *transport.HandshakeError
	if !errors.As(err, &refused) {
		s.g.opts.Logger.Info("WebSocket lost in its handshake", "upstream", s.name, "downstream", r.RemoteAddr, "err", err)
		return
	}
	w.Header().Set("Sec-WebSocket-Version", "13") // RFC 6455, 4.4
	downstream.WriteError(w, refused.Status, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "%s", refused.Reason))
}

// runSocket serves a WebSocket until it ends.
func (s *server) runSocket(c *transport.WebSocket, sender mcp.Sender, room mcp.Reservation) {
	defer room.Release()
	defer s.g.sockets.release(sender.Share, c)
	s.g.opts.Metrics.Sockets(s.name, 1)
	defer s.g.opts.Metrics.Sockets(s.name, -1)
	begin, peer := time.Now(), c.RemoteAddr().String()
	s.g.opts.Logger.Debug("WebSocket opened", "upstream", s.name, "downstream", peer)
	ctx, end := context.WithCancelCause(s.g.sockets.live)
	defer end(nil)
	defer s.g.expiry.Until(sender.Identity, end)()
	err := s.serveConn(ctx, &socket{WebSocket: c}, sender)
	if err == nil {
		err = cmp.Or(credentialEnd(ctx), mcp.ErrShutdown)
	}
	s.g.opts.Logger.Info("WebSocket closed", "upstream", s.name, "downstream", peer, "open", time.Since(begin).Round(time.Millisecond), "reason", err)
}

// credentialEnd returns why the credential ended that ctx is of; nil if it has not.
func credentialEnd(ctx context.Context) error {
	if why := context.Cause(ctx); why == expiry.ErrExpired || why == expiry.ErrRefused {
		return why
	}
	return nil
}

// A socket is a WebSocket that the gateway closes when it ends itself, when its client's
// session is over, or its credential: others have ended before they are closed.
type socket struct {
	*transport.WebSocket
	why atomic.Pointer[error] // nil if the gateway ends
}

// setCloseReason implements [closeReasoner].
func (c *socket) setCloseReason(why error) { c.why.Store(&why) }

func (c *socket) Close() error {
	why := c.why.Load()
	switch over := (*sessionOver)(nil); {
	case why != nil && errors.As(*why, &over):
		return c.End(transport.CloseRestart, over.Error())
	case why != nil && (*why == expiry.ErrExpired || *why == expiry.ErrRefused):
		return c.End(transport.CloseUnauthorized, (*why).Error()+"; connect again with another")
	}
	return c.End(transport.CloseGoingAway, mcp.ErrShutdown.Error())
}
