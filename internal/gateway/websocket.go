package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/mcpbridge/mcpbridge/internal/trace"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// socketSize is the memory of a WebSocket without its messages, in bytes: mostly buffers.
const socketSize = 8 << 10

// sockets are the WebSockets of all servers' clients. net/http does not close connections
// that were hijacked, so the gateway does.
type sockets struct {
	// Set by newSockets, read-only after.
	live   context.Context // ends with the first stop
	cancel context.CancelFunc

	running sync.WaitGroup // the goroutines that serve them

	// mu guards the fields below. It is held for map work only.
	mu      sync.Mutex
	open    map[io.Closer]struct{}
	lent    map[string]context.CancelFunc // those that other replicas have opened here, by name
	places  downstream.Places             // also of those in the handshake
	stopped bool
}

func newSockets(opts Options) *sockets {
	s := &sockets{open: make(map[io.Closer]struct{}), lent: make(map[string]context.CancelFunc), places: downstream.Places{
		All: limits.WebSockets, Max: opts.MaxSockets, Each: limits.WebSocketsEach, MaxEach: opts.MaxSocketsEach,
	}}
	s.live, s.cancel = context.WithCancel(context.Background())
	return s
}

// A socketLimitError reports that a limit on WebSockets is reached.
type socketLimitError struct {
	limit *limits.Limit
	n     int
}

func (e *socketLimitError) Error() string {
	return fmt.Sprintf("%d WebSockets are open, the limit; close some, or %s", e.n, e.limit.Raise())
}

// reserve takes a place for a WebSocket of a share; release gives it back. The error is
// mcp.ErrShutdown or a [*socketLimitError].
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

// add adds a WebSocket for which reserve has taken a place.
func (s *sockets) add(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = struct{}{}
}

// release gives back the place of a WebSocket. c is nil if the handshake failed.
func (s *sockets) release(share mcp.Share, c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	s.places.Give(share)
	s.running.Done()
}

// stop refuses new WebSockets, and begins to end the open ones gracefully.
func (s *sockets) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.cancel()
}

// wait waits until all WebSockets have ended. When ctx ends, it closes them.
func (s *sockets) wait(ctx context.Context) error {
	return downstream.Join(ctx, &s.running, s.cut)
}

// cut closes the open WebSockets, and returns their number.
func (s *sockets) cut() int {
	s.mu.Lock()
	open := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	var cuts sync.WaitGroup
	for _, c := range open {
		cuts.Go(func() { _ = c.Close() }) // its goroutine logs the reason
	}
	cuts.Wait()
	return len(open)
}

// bound sets the limits.
func (s *sockets) bound(all, each int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places.Max, s.places.MaxEach = all, each
}

func (s *sockets) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// serveSocket upgrades a request to a WebSocket, and serves it as [Gateway.ServeConn] does.
// The principal of the request is that of all messages.
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
	if carried := (placer{s}).placedSocket(w, r, sender, room); carried {
		return
	}
	t, lent := g.now(), g.sockets.lend(sender)
	c, err := transport.AcceptWebSocket(w, r, transport.AcceptOptions{
		CheckOrigin: t.origins.Allow,
		Header:      lent.header(),
		WebSocketOptions: transport.WebSocketOptions{
			MaxMessage: int(t.opts.MaxBody), WriteTimeout: t.opts.WriteTimeout, KeepAlive: t.opts.KeepAlive,
			MessageTimeout: t.opts.BodyTimeout,
		},
	})
	if err != nil {
		lent.end()
		g.sockets.release(share, nil)
		room.Release()
		s.failSocket(w, r, err)
		return
	}
	on := &socket{WebSocket: c}
	g.sockets.add(on)
	sender.Arrival = &trace.Arrival{Protocol: "websocket", Peer: r.RemoteAddr}
	s.life.Hold()
	go s.runSocket(on, lent, sender, room) // ends with the connection, or with sockets.wait
}

// refuseSocket answers a request for a WebSocket when there can't be another one.
func (s *server) refuseSocket(w http.ResponseWriter, r *http.Request, err error) {
	if f := (*socketLimitError)(nil); errors.As(err, &f) {
		s.g.opts.Metrics.Limit(s.name, f.limit.Key)
		s.g.opts.Logger.Warn("WebSocket refused: too many are open", "upstream", s.name, "downstream", r.RemoteAddr, "limit", f.n)
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
func (s *server) runSocket(c *socket, lent loan, sender mcp.Sender, room mcp.Reservation) {
	defer s.life.Leave()
	defer lent.end()
	defer room.Release()
	defer s.g.sockets.release(sender.Share, c)
	s.g.opts.Metrics.Sockets(s.name, 1)
	defer s.g.opts.Metrics.Sockets(s.name, -1)
	begin, peer := time.Now(), c.RemoteAddr().String()
	s.g.opts.Logger.Debug("WebSocket opened", "upstream", s.name, "downstream", peer)
	ctx, end := context.WithCancelCause(lent.live)
	defer end(nil)
	defer s.g.expiry.Until(sender.Identity, end)()
	err := s.serveConn(ctx, c, sender)
	if err == nil {
		err = cmp.Or(credentialEnd(ctx), s.life.Reason(), mcp.ErrShutdown)
	}
	s.g.opts.Logger.Info("WebSocket closed", "upstream", s.name, "downstream", peer, "open", time.Since(begin).Round(time.Millisecond), "reason", err, sender.Principal.Attr())
}

// credentialEnd returns why the credential ended that ctx is of; nil if it has not.
func credentialEnd(ctx context.Context) error {
	if why := context.Cause(ctx); why == expiry.ErrExpired || why == expiry.ErrRefused {
		return why
	}
	return nil
}

// A socket is a WebSocket whose close frame has a reason: the gateway's shutdown, or the end
// of the client's upstream session or credential.
type socket struct {
	*transport.WebSocket
	why atomic.Pointer[error] // nil: the gateway shuts down
}

// setCloseReason implements [closeReasoner].
func (c *socket) setCloseReason(why error) { c.why.Store(&why) }

func (c *socket) Close() error {
	why := c.why.Load()
	over, replaced := (*sessionOver)(nil), (*replacedError)(nil)
	switch {
	case why != nil && (errors.As(*why, &over) || errors.As(*why, &replaced)):
		return c.End(transport.CloseRestart, (*why).Error())
	case why != nil && (*why == expiry.ErrExpired || *why == expiry.ErrRefused):
		return c.End(transport.CloseUnauthorized, (*why).Error()+"; connect again with another")
	}
	return c.End(transport.CloseGoingAway, mcp.ErrShutdown.Error())
}
