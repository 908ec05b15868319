package forward

import (
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/handover"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

// A sessionRoute is the way of a request to its session.
type sessionRoute struct {
	s        *Server
	q        *Request
	instance string // that the session names
}

// bySession forwards a request of a session that another replica holds. If that has not
// answered it, a session that this replica holds stays until release.
func (s *Server) bySession(q *Request) (release func(), answered bool) {
	instance := holderOf(q)
	own := instance == s.g.instance
	if instance == "" || own && q.At == Messages {
		return nothing, false
	}
	if q.At == Streamable && q.R.Method == http.MethodPost && headerEra(q.R) == spec.Modern { // its envelope would decide
		if era, ok := q.Peek(); !ok || era != spec.Legacy {
			return nothing, !ok
		}
	}
	to := &sessionRoute{s, q, instance}
	if own { // it stays while it is asked for: a drain may begin at any moment
		return to.giveUp(replicas.Replica{}, false)
	}
	return to.follow()
}

// holderOf returns the instance that the session of a request names; empty without one.
func holderOf(q *Request) (instance string) {
	switch {
	case q.At == Messages:
		return peer.OfSession(q.R.URL.Query().Get(legacyfront.SessionParam))
	case q.At == Events, q.Claimed == spec.Modern, transport.IsUpgrade(q.R):
		return ""
	}
	return peer.OfSession(q.R.Header.Get(spec.HeaderSession))
}

func (t *sessionRoute) follow() (release func(), answered bool) {
	own, lives := t.s.g.opts.Peers.Member(t.instance)
	if t.s.g.mayLive(t.instance) && (t.q.At == Messages || t.s.g.opts.Peers.View().Heard.IsZero()) {
		t.refuseBusy(unheard())
		return nothing, true
	}
	switch {
	case t.q.At == Messages: // its session ends with its replica
		if lives = lives && t.q.Sender.Via == ""; lives && !t.forward(own) {
			t.refuseGone()
		}
		return nothing, lives
	case t.q.Sender.Via != "":
		return t.giveUp(own, false)
	case lives && !own.Draining && t.forward(own):
		return nothing, true
	}
	return t.giveUp(own, lives)
}

// giveUp answers a request whose session's own replica is this one, is gone, or gives its
// sessions away. own is that replica, if it lives.
func (t *sessionRoute) giveUp(own replicas.Replica, lives bool) (release func(), answered bool) {
	release, here, answered := t.hold()
	switch {
	case here || answered:
		return release, answered
	case t.q.Sender.Via != "" || t.instance == t.s.g.instance:
		return nothing, false
	}
	return nothing, t.find(own, lives)
}

// hold keeps the session here until release, if it is here. One that was handed over is
// forwarded to who has it.
func (t *sessionRoute) hold() (release func(), here, answered bool) {
	ctx := t.q.R.Context()
	for ctx.Err() == nil {
		release, d := t.s.o.Front.Hold(t.id(), t.q.Sender.Principal)
		switch {
		case d == nil && release == nil:
			return nothing, false, false
		case d == nil:
			return release, true, false
		}
		if by := d.Wait(ctx); by != "" {
			t.goOn(by)
			return nothing, false, true
		}
	}
	return nothing, false, true // the client has left
}

func (t *sessionRoute) id() string { return t.q.R.Header.Get(spec.HeaderSession) }

// goOn forwards a request to who has adopted its session, or, if that is gone, to whom it has handed
// the session on.
func (t *sessionRoute) goOn(by string) {
	to, lives := t.s.g.opts.Peers.Member(by)
	switch {
	case t.q.Moved:
		t.refuseBusy(wire.Errorf(spec.CodeInternal, "this session is being handed over; try again"))
	case lives && t.forward(to), t.find(replicas.Replica{}, false):
	default:
		t.refuseGone()
	}
}

// find forwards a request to who goes on with its session, or to its own replica if that lives
// and has it still. It reports false if nobody has.
func (t *sessionRoute) find(own replicas.Replica, lives bool) (answered bool) {
	group, ended := t.s.g.drain.group, lives && !own.Draining
	moves := t.s.o.Back.Era() != spec.Legacy // those of legacy servers end with their replica
	for range 2 {
		leaving := lives && own.Draining // it knows to whom it has handed the session over
		at, err := group.Find(t.q.R.Context(), t.id(), moves && !leaving)
		to, found := t.s.g.opts.Peers.Member(at)
		if !found && leaving {
			to, found = own, true
		}
		switch {
		case err != nil && !found && (moves || !ended): // it may go on elsewhere
			t.refuseUnknown(err)
			return true
		case at == t.s.g.instance:
			return false
		case !found && ended:
			t.refuseGone()
			return true
		case !found && t.s.g.mayLive(t.instance): // and have it
			t.refuseBusy(unheard())
			return true
		case !found:
			return false // there is no such session, as the front says
		case t.forward(to):
			return true
		}
		group.Forget(t.id()) // it has just ended: is there another?
		ended, lives = true, lives && to.Instance != own.Instance
	}
	t.refuseGone()
	return true
}

// forward forwards the request. It reports false if the other replica is gone.
func (t *sessionRoute) forward(to replicas.Replica) bool {
	return !isGone(t.s.forward(t.q, peer.Forward{To: to, Moved: t.q.Sender.Via != ""}))
}

func (t *sessionRoute) refuseUnknown(err error) {
	t.s.g.opts.Logger.Info("session not found", "upstream", t.s.o.Name, "err", err)
	t.refuseBusy(wire.Errorf(spec.CodeInternal, "%v; try again", handover.ErrUnknown))
}

// refuseBusy answers that the request may be sent again in a moment.
func (t *sessionRoute) refuseBusy(e *wire.Error) {
	m := t.s.unread(t.q)
	downstream.WriteBusy(t.q.W, m.ID, e)
}

func (t *sessionRoute) refuseGone() {
	m := t.s.unread(t.q)
	anew := "initialize anew"
	if t.q.At == Messages {
		anew = "GET " + Events.Path(t.s.o.Name) + " again"
	}
	downstream.WriteError(t.q.W, http.StatusNotFound, m.ID, wire.Errorf(spec.CodeSessionNotFound, "the replica that held this session is gone; %s", anew))
}
