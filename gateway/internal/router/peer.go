package router

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas/evict"
	"github.com/mcpbridge/mcpbridge/internal/replicas/handover"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
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
		{streamable.path(""), forwardedTo(streamable)},
		{messages.path(""), forwardedTo(messages)},
		{events.path(""), forwardedTo(events)},
		{watchPath, peerListener.serveWatch},
		{evict.Path, peerListener.serveEvict},
		{handover.Path, peerListener.serveHandover},
		{partPath, peerListener.servePart},
		{peer.HelloPath, func(g peerListener, w http.ResponseWriter, r *http.Request, e *peer.Envelope, _ string) {
			g.peers.ServeHello(w, r, e)
		}},
	}
}

// PeerHandler returns the handler of the peer listener. It serves other replicas, and nobody
// else. Nothing that it serves is forwarded.
func (g *Gateway) PeerHandler() http.Handler {
	routes := peerRoutes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { peerListener{g}.servePeer(w, r, routes) })
}

func (g peerListener) servePeer(w http.ResponseWriter, r *http.Request, routes []peerRoute) {
	t := g.now()
	t.bodies.bound(w, r)
	endChunked(w, r)
	if g.peers == nil {
		http.NotFound(w, r)
		return
	}
	e, err := g.peers.Open(r)
	if err != nil {
		g.refuseEnvelope(w, r, &t.guard, err)
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

// refuseEnvelope answers a request whose envelope was refused: what it says of a client's
// credential is for the client.
func (g peerListener) refuseEnvelope(w http.ResponseWriter, r *http.Request, at *guard, err error) {
	if refusal := (*peer.RefusedError)(nil); errors.As(err, &refusal) && refusal.Expired {
		g.refuseSender(w, r, at, &auth.Refusal{Code: auth.CodeInvalidToken, Reason: refusal.Reason})
		return
	}
	at.refused.reportPeer(r, err)
	peer.Refuse(w, err)
}

// forwardedTo serves a request that another replica has forwarded to a server.
func forwardedTo(at endpoint) func(peerListener, http.ResponseWriter, *http.Request, *peer.Envelope, string) {
	return func(g peerListener, w http.ResponseWriter, r *http.Request, e *peer.Envelope, name string) {
		t := g.now()
		s := t.servers[name]
		if s == nil || !s.life.Enter() {
			peer.Unserve(w)
			return
		}
		defer s.life.Leave()
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
		if sender.Arrival = g.arrival(r); sender.Arrival != nil {
			sender.Arrival.Via = sender.Via
		}
		release, done := g.forwarded(w, r, s, sender, e.Moved)
		defer release()
		if !done {
			q := request{s: s, w: w, r: r, at: at, sender: sender}
			defer q.end()
			q.serve()
		}
	}
}

// senderOf returns the sender of a forwarded request, who is authenticated again: what
// the replica at the edge has found has to be found here. Only a certificate can't be
// presented twice: that of the client is known to the edge alone.
func (g peerListener) senderOf(w http.ResponseWriter, r *http.Request, s *server, e *peer.Envelope) (mcp.Sender, bool) {
	sender := e.Sender()
	sender.Via = e.From
	if _, byCertificate := s.guard.auth.(auth.MTLS); byCertificate && e.Identity != nil {
		return sender, true
	}
	id, err := s.guard.auth.Authenticate(r, s.guard.endpoint)
	if err == nil && principalOf(id) != sender.Principal {
		err = &auth.Refusal{Verbatim: true, Reason: "the credential is not the principal's that another replica has named"}
	}
	if err != nil {
		g.refuseSender(w, r, &s.guard, err)
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

// A forwarder forwards requests for a server to other replicas.
type forwarder struct{ *server }

// forwardedRetry forwards a modern request that continues a call which another replica holds,
// and reports whether it has. If that replica is gone, the front says so.
func (s forwarder) forwardedRetry(w http.ResponseWriter, r *http.Request, body []byte, sender mcp.Sender) bool {
	if sender.Via != "" || len(s.g.peers.View().Members) < 2 {
		return false
	}
	state, ok := wire.GetString(wire.Get(body, "params"), "requestState")
	if !ok {
		return false
	}
	to, lives := s.g.peers.Member(peer.OfState(state))
	if !lives {
		return false
	}
	err := s.forward(w, r, sender, peer.Forward{To: to, Path: streamable.path(s.name), Body: body})
	gone := (*peer.GoneError)(nil)
	return !errors.As(err, &gone)
}

// forward forwards a request. It answers what can't be forwarded, except to a replica that is
// gone, or that has not answered what may be sent again elsewhere: that is returned as an error.
func (s forwarder) forward(w http.ResponseWriter, r *http.Request, sender mcp.Sender, f peer.Forward) error {
	t := s.g.now()
	f.Sender, f.Streams, f.WriteTimeout = sender, &s.streams, cmp.Or(t.opts.WriteTimeout, legacyfront.DefaultWriteTimeout)
	f.Ends = []context.Context{s.g.streams, s.life.Context()}
	_, f.Whole = s.guard.auth.(auth.MTLS)
	body := &forwardedBody{ReadCloser: r.Body, w: w, left: r.ContentLength}
	if f.Body == nil {
		r.Body = body
	}
	err := s.g.peers.Forward(w, r, f)
	gone, unanswered := (*peer.GoneError)(nil), (*peer.UnansweredError)(nil)
	switch {
	case err == nil:
	case body.err != nil:
		t.bodies.refuse(w, r, s.name, body.err)
	case errors.Is(err, downstream.ErrClientLeft):
	case err == peer.ErrCut:
		panic(http.ErrAbortHandler) // the client must not take it for the end
	case errors.As(err, &gone), f.Again && errors.As(err, &unanswered) && unanswered.Stopped():
		return err
	default:
		s.notForwarded(w, r, f, err)
	}
	return nil
}

// A forwardedBody is a request's body that is read while it is forwarded. Like
// [bodyReader.read], it clears the deadline once all is read.
type forwardedBody struct {
	io.ReadCloser
	w    http.ResponseWriter
	left int64 // negative if the length is unknown
	err  error // of reading
}

func (b *forwardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	switch {
	case err == io.EOF, err == nil && b.left == 0:
		_ = http.NewResponseController(b.w).SetReadDeadline(time.Time{})
	case err != nil:
		b.err = err
	}
	return n, err
}
