package router

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

// sinceOpenings is the first revision of replicas that open streams of HTTP+SSE and WebSockets
// for others.
const sinceOpenings = 1

// partPath is where other replicas end what this one has opened for them. The name of a server
// follows.
const partPath = peer.PartPath + "/"

// openingHeader tells another replica the name of what it has opened; nil without one.
func openingHeader(name string) http.Header {
	if name == "" {
		return nil
	}
	return http.Header{peer.Opening: {name}}
}

// servePart ends in order what was opened for another replica.
func (g peerListener) servePart(w http.ResponseWriter, r *http.Request, _ *peer.Envelope, name string) {
	id := r.URL.Query().Get(peer.OpeningParam)
	s := g.now().servers[name]
	if !g.sockets.Part(id) && (s == nil || !s.legacy.EndEvents(legacyfront.SessionID(id))) {
		http.NotFound(w, r)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// placedSocket has a WebSocket served by the replica that serves its principal, and reports
// whether it has. The place and the memory of the WebSocket are given back then.
func (s placer) placedSocket(w http.ResponseWriter, r *http.Request, sender mcp.Sender, room mcp.Reservation) (done bool) {
	if !s.mayPlace(sender) {
		return false
	}
	var c *peer.Carried
	done = s.send(r.Context(), sender.Principal, sinceOpenings, func(to replicas.Replica) (gone bool) {
		c, gone = forwarder(s).upgrade(w, r, sender, to)
		return gone
	})
	switch {
	case c != nil:
		s.g.sockets.Add(c)
		s.life.Hold()
		go s.runCarried(c, r.RemoteAddr, sender, room) // ends with the connection, or with sockets.Wait
	case done:
		s.g.sockets.Release(sender.Share, nil)
		room.Release()
	}
	return done
}

// upgrade has another replica open a WebSocket. It answers what can't be opened; then there is
// nothing to carry.
func (s forwarder) upgrade(w http.ResponseWriter, r *http.Request, sender mcp.Sender, to replicas.Replica) (c *peer.Carried, gone bool) {
	t := s.g.now()
	f := peer.Forward{
		To: to, Path: streamable.path(s.name), Part: partPath + s.name, Sender: sender,
		WriteTimeout: cmp.Or(t.opts.WriteTimeout, legacyfront.DefaultWriteTimeout),
		Quiet:        3 * cmp.Or(t.opts.KeepAlive, transport.DefaultKeepAlive), // it pings more often
	}
	_, f.Whole = s.guard.auth.(auth.MTLS)
	c, err := s.g.peers.Upgrade(w, r, f)
	dead := (*peer.GoneError)(nil)
	switch {
	case errors.As(err, &dead):
		return nil, true
	case err != nil && !errors.Is(err, downstream.ErrClientLeft):
		s.notForwarded(w, r, f, err)
	}
	return c, false
}

// runCarried carries a WebSocket until it ends.
func (s *server) runCarried(c *peer.Carried, from string, sender mcp.Sender, room mcp.Reservation) {
	defer s.life.Leave()
	defer room.Release()
	defer s.g.sockets.Release(sender.Share, c)
	begin := time.Now()
	err := c.Run(s.g.sockets.Live(), s.life.Context())
	s.g.opts.Logger.Info("WebSocket closed that another replica has served", "upstream", s.name, "downstream", from, "open", time.Since(begin).Round(time.Millisecond), "reason", err, sender.Principal.Attr())
}
