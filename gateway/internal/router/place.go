package router

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/handover"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

// A leaving is how this replica gives up its sessions.
type leaving struct {
	group      *handover.Group // nil for one replica
	begun      atomic.Bool
	begin, end sync.Once
	ending     chan struct{} // see handover.Pace
	done       chan struct{} // closed when all is handed over that can be
	stop       context.CancelFunc
}

// Drain begins to hand over the sessions of legacy clients that other replicas can go on with,
// when the others know that this one is about to end. EndStreams does so too.
func (g *Gateway) Drain() {
	if g.peers == nil {
		return
	}
	l := &g.leaving
	l.begin.Do(func() {
		ctx, stop := context.WithCancel(context.WithoutCancel(g.live))
		l.ending, l.done, l.stop = make(chan struct{}), make(chan struct{}), stop
		var servers []handover.Server
		for _, s := range g.now().inOrder() {
			servers = append(servers, s.handedOver())
		}
		l.begun.Store(true)
		go func() { // endLeaving waits for it
			defer close(l.done)
			l.group.Leave(ctx, servers, handover.Pace{Hurry: g.streams.Done(), Ending: l.ending})
		}()
	})
}

// handedOver returns the server as one whose sessions are handed over. Those of a legacy server
// have a state there.
func (s *server) handedOver() handover.Server {
	return handover.Server{Name: s.name, Front: s.legacy, Stateless: func() bool { return s.back.Era() == spec.Modern }, Heir: placer{s}.heir, Took: placer{s}.took}
}

// endLeaving waits until all sessions are handed over that can be, at most until ctx ends.
func (g *Gateway) endLeaving(ctx context.Context) {
	if g.peers == nil {
		return
	}
	g.Drain()
	g.leaving.end.Do(func() { close(g.leaving.ending) })
	_ = wake.Await(ctx, g.leaving.done) // what is left ends
	g.leaving.stop()
	<-g.leaving.done
}

// serveHandover takes sessions of a replica that ends.
func (g peerListener) serveHandover(w http.ResponseWriter, r *http.Request, e *peer.Envelope, name string) {
	s := g.now().servers[name]
	if s == nil || !s.life.Enter() {
		http.NotFound(w, r)
		return
	}
	defer s.life.Leave()
	g.leaving.group.Serve(w, r, e.From, s.handedOver())
}

// A sought is a request of a session that may be another replica's.
type sought struct {
	w        http.ResponseWriter
	r        *http.Request
	s        *server
	sender   mcp.Sender
	moved    bool   // see peer.Envelope
	instance string // that the session names
	path     string // where requests of such sessions are served
}

func nothing() {}

// forwarded forwards a request of a session that another replica holds, and reports whether it
// has answered it. If it has not, a session that this replica holds stays until release.
func (g *Gateway) forwarded(w http.ResponseWriter, r *http.Request, s *server, sender mcp.Sender, moved bool) (release func(), done bool) {
	instance, path := holderOf(r)
	if instance == "" || instance == g.instance && !g.leaving.begun.Load() {
		return nothing, false
	}
	q := &sought{w, r, s, sender, moved, instance, path}
	to, lives := g.peers.Member(instance)
	if !lives && instance != g.instance && g.peers.View().Heard.IsZero() {
		q.refuseBusy(wire.Errorf(spec.CodeInternal, "this replica does not know the others yet; try again in a moment"))
		return nothing, true
	}
	if sender.Via != "" || path != streamable.path("") {
		lives = lives && sender.Via == ""
		return q.elsewhere(to, lives)
	}
	if lives && !to.Draining && q.forward(to) {
		return nothing, true
	}
	return q.elsewhere(to, lives)
}

// elsewhere serves a request whose session's own replica is this one, is gone, or gives its
// sessions away. to is that replica, if it lives.
func (q *sought) elsewhere(to replicas.Replica, lives bool) (release func(), done bool) {
	if q.path != streamable.path("") {
		if lives && !q.forward(to) {
			q.refuseGone()
		}
		return nothing, lives
	}
	release, here, done := q.hold()
	switch {
	case here || done:
		return release, done
	case q.sender.Via != "" || q.instance == q.s.g.instance:
		return nothing, false
	}
	return nothing, q.find(to, lives)
}

// hold keeps the session here until release, if it is here. One that was handed over is
// forwarded to who has it.
func (q *sought) hold() (release func(), here, done bool) {
	for q.r.Context().Err() == nil {
		release, d := q.s.legacy.Hold(q.id(), q.sender.Principal, q.r.Method == http.MethodGet)
		switch {
		case d == nil && release == nil:
			return nothing, false, false
		case d == nil:
			return release, true, false
		}
		if by := d.Wait(q.r.Context()); by != "" {
			q.goOn(by)
			return nothing, false, true
		}
	}
	return nothing, false, true // the client has left
}

func (q *sought) id() string { return q.r.Header.Get(spec.HeaderSession) }

// goOn forwards a request to who has adopted its session.
func (q *sought) goOn(by string) {
	to, lives := q.s.g.peers.Member(by)
	switch {
	case q.moved:
		q.refuseBusy(wire.Errorf(spec.CodeInternal, "this session is being handed over; try again"))
	case !lives || !q.forward(to):
		q.refuseGone()
	}
}

// find forwards a request to who goes on with its session, or to its own replica if that lives
// and has it still. It reports false if nobody has.
func (q *sought) find(own replicas.Replica, lives bool) (done bool) {
	group, ended := q.s.g.leaving.group, lives && !own.Draining
	for range 2 {
		at, err := group.Find(q.r.Context(), q.id())
		to, found := q.s.g.peers.Member(at)
		if !found && lives && own.Draining {
			to, found = own, true
		}
		switch {
		case err != nil && !found && !ended:
			q.refuseUnknown(err)
			return true
		case at == q.s.g.instance:
			return false
		case !found && ended:
			q.refuseGone()
			return true
		case !found:
			return false // there is no such session, as the front says
		case q.forward(to):
			return true
		}
		group.Forget(q.id()) // it has just ended: is there another?
		ended, lives = true, lives && to.Instance != own.Instance
	}
	q.refuseGone()
	return true
}

func (q *sought) refuseUnknown(err error) {
	q.s.g.opts.Logger.Info("session not found", "upstream", q.s.name, "err", err)
	q.refuseBusy(wire.Errorf(spec.CodeInternal, "%v; try again", handover.ErrUnknown))
}

// refuseBusy answers that the request may be sent again in a moment.
func (q *sought) refuseBusy(e *wire.Error) {
	m := q.s.unread(q.w, q.r)
	q.w.Header().Set("Retry-After", "1")
	downstream.WriteError(q.w, http.StatusServiceUnavailable, m.ID, e)
}

// forward forwards the request. It reports false if the other replica is gone.
func (q *sought) forward(to replicas.Replica) bool {
	err := forwarder{q.s}.forward(q.w, q.r, q.sender, peer.Forward{To: to, Path: q.path + q.s.name, Moved: q.sender.Via != ""})
	gone := (*peer.GoneError)(nil)
	return !errors.As(err, &gone)
}

func (q *sought) refuseGone() {
	m := q.s.unread(q.w, q.r)
	downstream.WriteError(q.w, http.StatusNotFound, m.ID, wire.Errorf(spec.CodeSessionNotFound, "the replica that held this session is gone; %s", q.s.anew(q.path)))
}

// anew says how a client gets another session.
func (s *server) anew(path string) string {
	if path == string(messages)+"/" {
		return "GET " + events.path(s.name) + " again"
	}
	return "initialize anew"
}

// holderOf returns the instance that the session of a request names, and where requests of
// such sessions are served.
func holderOf(r *http.Request) (instance, path string) {
	switch {
	case strings.HasPrefix(r.URL.Path, string(messages)):
		return peer.OfSession(r.URL.Query().Get(legacyfront.SessionParam)), messages.path("")
	case strings.HasPrefix(r.URL.Path, string(events)), headerEra(r.Header) == spec.Modern, transport.IsUpgrade(r):
		return "", ""
	}
	return peer.OfSession(r.Header.Get(spec.HeaderSession)), streamable.path("")
}

// close ends the group. Call it after all requests have ended.
func (l *leaving) close() {
	if l.group != nil {
		l.group.Close()
	}
}

// newHandover returns what hands sessions over; nil without other replicas.
func newHandover(o *Options) (*handover.Group, error) {
	if o.Peers == nil {
		return nil, nil
	}
	return handover.New(handover.Options{Engine: o.Peers.Engine(), URL: o.Peers.URL, RoundTripper: o.Peers.RoundTripper,
		Logger: o.Logger, Metrics: o.Handovers})
}
