package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

// sinceOpenings is the first revision of replicas that open streams of HTTP+SSE and WebSockets
// for others.
const sinceOpenings = 1

// partPath is where other replicas end what this one has opened for them. The name of a server
// follows.
const partPath = peer.PartPath + "/"

// A loan is a WebSocket as the replica sees it that serves it, for a client of another one.
type loan struct {
	name string // empty if the client is this replica's
	live context.Context
	end  context.CancelFunc
}

// lend returns the life of a WebSocket that is about to be opened. The caller must call end.
func (s *sockets) lend(sender mcp.Sender) loan {
	l := loan{live: s.live, end: func() {}}
	if sender.Via == "" {
		return l
	}
	l.name = rand.Text()
	live, cancel := context.WithCancel(s.live)
	s.mu.Lock()
	s.lent[l.name] = cancel
	s.mu.Unlock()
	l.live, l.end = live, func() {
		cancel()
		s.mu.Lock()
		delete(s.lent, l.name)
		s.mu.Unlock()
	}
	return l
}

// part begins to end a WebSocket that another replica has opened. It reports false if there is
// none of that name.
func (s *sockets) part(name string) bool {
	s.mu.Lock()
	end := s.lent[name]
	s.mu.Unlock()
	if end != nil {
		end()
	}
	return end != nil
}

// header tells the other replica the name.
func (l loan) header() http.Header {
	if l.name == "" {
		return nil
	}
	return http.Header{peer.Opening: {l.name}}
}

// servePart ends in order what was opened for another replica.
func (g peerListener) servePart(w http.ResponseWriter, r *http.Request, _ *peer.Envelope, name string) {
	id := r.URL.Query().Get(peer.OpeningParam)
	s := g.now().servers[name]
	if !g.sockets.part(id) && (s == nil || !s.legacy.EndEvents(legacyfront.SessionID(id))) {
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
		s.g.sockets.add(c)
		s.life.Hold()
		go s.runCarried(c, r.RemoteAddr, sender, room) // ends with the connection, or with sockets.wait
	case done:
		s.g.sockets.release(sender.Share, nil)
		room.Release()
	}
	return done
}

// upgrade has another replica open a WebSocket. It answers what can't be opened; then there is
// nothing to carry.
func (s forwarder) upgrade(w http.ResponseWriter, r *http.Request, sender mcp.Sender, to replicas.Replica) (c *peer.Carried, gone bool) {
	t := s.g.now()
	f := peer.Forward{
		To: to, Path: streamablePath + s.name, Part: partPath + s.name, Sender: sender,
		WriteTimeout: cmp.Or(t.opts.WriteTimeout, legacyfront.DefaultWriteTimeout),
		Quiet:        3 * cmp.Or(t.opts.KeepAlive, transport.DefaultKeepAlive), // it pings more often
	}
	c, err := s.g.peers.Upgrade(w, r, f)
	dead := (*peer.GoneError)(nil)
	switch {
	case errors.As(err, &dead):
		return nil, true
	case err != nil && !errors.Is(err, downstream.ErrClientLeft):
		s.notForwarded(w, f, err)
	}
	return c, false
}

// runCarried carries a WebSocket until it ends.
func (s *server) runCarried(c *peer.Carried, from string, sender mcp.Sender, room mcp.Reservation) {
	defer s.life.Leave()
	defer room.Release()
	defer s.g.sockets.release(sender.Share, c)
	begin := time.Now()
	err := c.Run(s.g.sockets.live, s.life.Context())
	s.g.opts.Logger.Info("WebSocket closed that another replica has served", "upstream", s.name, "downstream", from, "open", time.Since(begin).Round(time.Millisecond), "reason", err, sender.Principal.Attr())
}
