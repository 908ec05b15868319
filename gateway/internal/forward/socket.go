package forward

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/sockets"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

// sinceOpenings is the first revision of replicas that open streams of HTTP+SSE and WebSockets
// for others.
const sinceOpenings = 1

// PartPath is where other replicas end what this one has opened for them. The name of a server
// follows.
const PartPath = peer.PartPath + "/"

func (s *Server) partPath() string { return PartPath + s.o.Name }

// ServePart ends in order what was opened for another replica. s is nil if the server is not
// there any more.
func (g *Group) ServePart(w http.ResponseWriter, r *http.Request, s *Server) {
	id, why := r.URL.Query().Get(peer.OpeningParam), error(nil)
	if r.URL.Query().Has(peer.YieldParam) {
		why = sockets.ErrYielded
	}
	if !g.opts.Sockets.Part(id, why) && (s == nil || !s.o.Front.EndEvents(legacyfront.SessionID(id))) {
		http.NotFound(w, r)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// socketByPrincipal has a WebSocket served by the replica that serves its principal. The room
// of the WebSocket is given back then, once it has ended.
func (s *Server) socketByPrincipal(q *Request) (answered bool) {
	give, ok := q.Room()
	if !ok {
		return true
	}
	var c *peer.Carried
	answered = s.place(q, wire.ID{}, sinceOpenings, func(to replicas.Replica) (gone error) {
		c, gone = s.upgrade(q, to)
		return gone
	})
	switch {
	case c != nil:
		on := newCarried(c)
		s.g.opts.Sockets.Add(q.Sender.Share, on)
		s.o.Life.Hold()
		go func() { // ends with the connection, or with sockets.Wait
			defer s.o.Life.Leave()
			defer give(on)
			s.g.carry(on, carrying{s.o.Name, q.R.RemoteAddr, q.Sender.Principal}, s.o.Life.Context())
		}()
	case answered:
		give(nil)
	}
	return answered
}

// upgrade has another replica open a WebSocket. It answers what can't be opened; then there is
// nothing to carry.
func (s *Server) upgrade(q *Request, to replicas.Replica) (c *peer.Carried, gone error) {
	f := peer.Forward{
		To: to, Path: q.At.Path(s.o.Name), Part: s.partPath(), Sender: q.Sender, Whole: s.o.Whole,
		WriteTimeout: s.g.writeTimeout(), Quiet: s.g.quiet(),
	}
	c, err := s.g.opts.Peers.Upgrade(q.W, q.R, f)
	switch {
	case isGone(err), isSilent(err):
		return nil, err
	case err != nil && !errors.Is(err, downstream.ErrClientLeft):
		s.notAnswered(q, f, err)
	}
	return c, nil
}

// A carrying says of a WebSocket whose it is, for the log.
type carrying struct {
	server, from string
	principal    mcp.Principal // empty if it is not known here
}

// carry carries a WebSocket until it ends, as it does when over ends.
func (g *Group) carry(c *carried, of carrying, over context.Context) {
	defer c.yield(nil)
	begin := time.Now()
	err := c.Run(c.yields, g.opts.Sockets.Live(), over)
	g.opts.Logger.Info("WebSocket closed that another replica has served", "upstream", of.server, "downstream", of.from, "open", time.Since(begin).Round(time.Millisecond), "reason", err, of.principal.Attr())
}

func newCarried(c *peer.Carried) *carried {
	on := &carried{Carried: c}
	on.yields, on.yield = context.WithCancelCause(context.Background())
	return on
}

// A carried is a WebSocket that another replica serves.
type carried struct {
	*peer.Carried
	yields context.Context // ends once its place is needed
	yield  context.CancelCauseFunc
}

// Yield implements [sockets.Socket].
func (c *carried) Yield() { c.yield(peer.ErrYielded) }
