package router

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/mcpbridge/mcpbridge/gateway/internal/admission"
	"github.com/mcpbridge/mcpbridge/gateway/internal/forward"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas/evict"
	"github.com/mcpbridge/mcpbridge/internal/replicas/handover"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// A peerListener serves the requests of other replicas.
type peerListener struct{ *Gateway }

// A peerRoute is what the peer listener serves, for other replicas alone. The envelope of the
// request was opened.
type peerRoute struct {
	path  string // followed by the name of a server if it ends with a slash
	serve func(g peerListener, w http.ResponseWriter, r *http.Request, e *peer.Envelope, server string)
}

// peerRoutes returns all routes of the peer listener.
func peerRoutes() []peerRoute {
	return []peerRoute{
		{forward.Streamable.Path(""), forwardedTo(forward.Streamable)},
		{forward.Messages.Path(""), forwardedTo(forward.Messages)},
		{forward.Events.Path(""), forwardedTo(forward.Events)},
		{watchPath, peerListener.serveWatch},
		{evict.Path, peerListener.serveEvict},
		{handover.Path, peerListener.serveHandover},
		{forward.PartPath, peerListener.servePart},
		{peer.BeatPath, func(g peerListener, w http.ResponseWriter, r *http.Request, e *peer.Envelope, _ string) {
			g.peers.ServeBeat(w, r, e)
		}},
		{peer.HoldsPath, func(g peerListener, w http.ResponseWriter, r *http.Request, e *peer.Envelope, _ string) {
			g.peers.ServeHolds(w, r, e)
		}},
		{peer.HelloPath, func(g peerListener, w http.ResponseWriter, r *http.Request, e *peer.Envelope, _ string) {
			g.peers.ServeHello(w, r, e)
		}},
	}
}

// PeerHandler returns the handler of the peer listener. It serves other replicas, and nobody
// else. What it serves is forwarded only for a session that has moved, or
// for a client of a server that the other replica has not.
func (g *Gateway) PeerHandler() http.Handler {
	routes := peerRoutes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { peerListener{g}.servePeer(w, r, routes) })
}

func (g peerListener) servePeer(w http.ResponseWriter, r *http.Request, routes []peerRoute) {
	t := g.now()
	t.bodies.Bound(w, r)
	endChunked(w, r)
	if g.peers == nil {
		http.NotFound(w, r)
		return
	}
	e, err := g.peers.Open(r)
	if err != nil {
		refuseEnvelope(t.guard, w, r, err)
		return
	}
	r.RemoteAddr = cmp.Or(e.Addr, r.RemoteAddr)
	for _, route := range routes {
		name, ok := strings.CutPrefix(r.URL.Path, route.path)
		if ok && (name == "") != strings.HasSuffix(route.path, "/") {
			route.serve(g, w, r, e, name)
			return
		}
	}
	http.NotFound(w, r)
}

// refuseEnvelope answers a request of another replica whose envelope was refused: what it says
// of a client's credential is for the client.
func refuseEnvelope(g *admission.Guard, w http.ResponseWriter, r *http.Request, err error) {
	if refusal := (*peer.RefusedError)(nil); errors.As(err, &refusal) && refusal.Expired {
		g.Refuse(w, r, &auth.Refusal{Code: auth.CodeInvalidToken, Reason: refusal.Reason})
		return
	}
	g.ReportPeer(r, err)
	peer.Refuse(w, err)
}

// forwardedTo serves a request that another replica has forwarded to a server.
func forwardedTo(at forward.Endpoint) func(peerListener, http.ResponseWriter, *http.Request, *peer.Envelope, string) {
	return func(g peerListener, w http.ResponseWriter, r *http.Request, e *peer.Envelope, name string) {
		t := g.now()
		s := t.servers[name]
		if s == nil || !s.life.Enter() {
			peer.Unserve(w)
			return
		}
		defer s.life.Leave()
		if e.Unauthenticated {
			g.serveFor(w, r, s, at)
			return
		}
		sender, ok := g.senderOf(w, r, s, e)
		if !ok {
			return
		}
		place, limit, most := g.inflight.EnterCounted()
		if limit != nil {
			g.refuseInFlight(w, r, limit, most)
			return
		}
		defer place.Leave()
		if sender.Arrival = arrivalOf(r, g.Gateway); sender.Arrival != nil {
			sender.Arrival.Via = sender.Via
		}
		s.answer(request{s: s, w: w, r: r, at: at, sender: sender}, e.Moved)
	}
}

// serveFor serves a client's request for a replica that has not the server, as if the client had
// connected to this one. The certificate of a client is known to the other alone, which does not
// know what it is worth here.
func (g peerListener) serveFor(w http.ResponseWriter, r *http.Request, s *server, at forward.Endpoint) {
	if auth.ByCertificate(s.guard.Auth, r) {
		peer.Unserve(w)
		return
	}
	g.serveEntered(w, r, s, at)
}

// senderOf returns the sender of a forwarded request, who is authenticated again: what
// the replica at the edge has found has to be found here. Only a certificate can't be
// presented twice: that of the client is known to the edge alone.
func (g peerListener) senderOf(w http.ResponseWriter, r *http.Request, s *server, e *peer.Envelope) (mcp.Sender, bool) {
	sender := e.Sender()
	sender.Via = e.From
	if auth.MayBeVouchedFor(s.guard.Auth, r, e.Identity) {
		return sender, true
	}
	id, err := s.guard.Auth.Authenticate(r, s.guard.Endpoint)
	if err == nil && principalOf(id) != sender.Principal {
		err = &auth.Refusal{Verbatim: true, Reason: "the credential is not the principal's that another replica has named"}
	}
	if err != nil {
		s.guard.Refuse(w, r, err)
		return sender, false
	}
	sender.Identity = id
	return sender, true
}

func principalOf(id *mcp.Identity) mcp.Principal {
	if id == nil {
		return mcp.Anonymous
	}
	return id.Principal
}

// serveHandover takes sessions of a replica that ends.
func (g peerListener) serveHandover(w http.ResponseWriter, r *http.Request, e *peer.Envelope, name string) {
	s := g.now().servers[name]
	if s == nil || !s.life.Enter() {
		http.NotFound(w, r)
		return
	}
	defer s.life.Leave()
	g.forward.ServeHandover(w, r, e.From, s.together.forward)
}

// servePart ends in order what was opened for another replica.
func (g peerListener) servePart(w http.ResponseWriter, r *http.Request, _ *peer.Envelope, name string) {
	var of *forward.Server // nil if the server is not there any more
	if s := g.now().servers[name]; s != nil {
		of = s.together.forward
	}
	g.forward.ServePart(w, r, of)
}
