package forward

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

const (
	// verdictWait bounds how long initialize waits for the era of a server that has just
	// been started, and verdictPoll is how often it looks.
	verdictWait = 10 * time.Second
	verdictPoll = 20 * time.Millisecond
	// forwards bounds how often a request is forwarded: to a replica, again once that has answered
	// after a silence, and to the next one.
	forwards = 3
)

// messageByPrincipal forwards a request to the replica that serves all calls of its principal.
func (s *Server) messageByPrincipal(q *Request, m *wire.Message, era spec.Era) (answered bool) {
	if m.Kind() != wire.Request || !s.belongs(q.R.Context(), m, era) {
		return false
	}
	return s.place(q, m.ID, 0, func(to replicas.Replica) (gone error) {
		return s.forward(q, peer.Forward{To: to, Body: m.Text, Again: mayRepeat(q.R, m), Placed: true})
	})
}

// eventsByPrincipal does so with the GET of an HTTP+SSE stream, if the client has not a
// session of its own at the server.
func (s *Server) eventsByPrincipal(q *Request) (answered bool) {
	if s.ownSessions(q.R.Context()) {
		return false
	}
	return s.place(q, wire.ID{}, sinceOpenings, func(to replicas.Replica) (gone error) {
		return s.forward(q, peer.Forward{To: to, Part: s.partPath(), Again: true, Placed: true})
	})
}

// place forwards what a principal has sent to the replica that serves it: the error of forward
// says that this one is gone, and the next one is to be asked. It reports false if this one
// serves it, or if the other is of a revision before since.
func (s *Server) place(q *Request, id wire.ID, since int, forward func(to replicas.Replica) (gone error)) (answered bool) {
	name := s.claim(q.Sender.Principal)
	if name == "" {
		return false
	}
	ctx := q.R.Context()
	to := s.g.placement.Find(ctx, name, s.o.HoldFor)
	for range forwards {
		if to.Instance == s.g.instance || to.Revision < since {
			return false
		}
		gone := forward(to)
		if gone == nil {
			s.g.placement.lost.forget(to.Instance)
			return true
		}
		var found bool
		if to, found = s.next(ctx, name, to, gone); !found {
			s.refuseHeld(q, id)
			return true
		}
	}
	return false
}

// next returns who serves a principal once that one is gone.
func (s *Server) next(ctx context.Context, name string, to replicas.Replica, err error) (replicas.Replica, bool) {
	if gone := (*peer.GoneError)(nil); errors.As(err, &gone) && gone.Unserved {
		return s.g.placement.Taken(ctx, name, to) // it has nothing of it any more
	}
	return s.g.placement.Lost(ctx, name, to)
}

// refuseHeld answers a request that was not forwarded: another replica may serve the principal, and
// can't be reached.
func (s *Server) refuseHeld(q *Request, id wire.ID) {
	downstream.WriteBusy(q.W, id, s.heldError())
}

func (s *Server) heldError() *wire.Error {
	return wire.Errorf(spec.CodeInternal, "server %q: the replica that serves you does not answer; try again: another one takes over within some seconds", s.o.Name)
}

// Serve has next serve a request here, if this replica is the one to serve its principal, and no
// other can have become that by the time of the response, unless this one is draining. One that has
// come through a group is served by whichever replica that is.
func (s *Server) Serve(ctx context.Context, req *mcp.Request, c mcp.Caller, next mcp.Handler) (*mcp.Result, error) {
	name, holder := s.claimOf(req), s.heldBy(req)
	switch {
	case holder != "":
		return s.serveTask(ctx, name, holder, req, c, next)
	case name == "":
		return next.Serve(ctx, req, c)
	case s.isMember(req):
		return s.serveMember(ctx, name, req, c, next)
	}
	s.g.placement.Find(ctx, name, s.o.HoldFor) // it is wanted from now on
	return s.serveHere(ctx, name, req, c, next)
}

// serveHere has next serve a request of the principal that claims a name.
func (s *Server) serveHere(ctx context.Context, name string, req *mcp.Request, c mcp.Caller, next mcp.Handler) (*mcp.Result, error) {
	defer s.g.placement.use(name)()
	epoch, err := s.g.placement.Owns(name)
	if err != nil {
		return nil, s.notOurs(req, err)
	}
	res, err := next.Serve(ctx, req, c)
	if err != nil {
		return nil, err
	}
	if lost := s.g.placement.StillOwns(name, epoch); lost != nil {
		res.Release()
		s.g.opts.Logger.Warn("a call ended after this replica had lost its claim", "upstream", s.o.Name, "method", req.Method, "claim", replicas.Key(name), "err", lost)
		return nil, &mcp.Refusal{Status: http.StatusBadGateway, Err: wire.Errorf(spec.CodeInternal,
			"server %q: while the call ran, another replica may have taken over; it may have taken effect here: check before sending it again", s.o.Name)}
	}
	return res, nil
}

// notOurs returns the error for a request that this replica may not serve.
func (s *Server) notOurs(req *mcp.Request, why error) error {
	if why == errElsewhere && req.Session != "" {
		return wire.Errorf(spec.CodeSessionNotFound, "server %q: %v; initialize anew", s.o.Name, why)
	}
	if _, continues := wire.GetString(req.Params, "requestState"); continues && why == errElsewhere { // which comes here each time
		return mcp.Refuse(spec.CodeInvalidParams, "server %q: %v; send the call anew, without requestState and inputResponses", s.o.Name, why)
	}
	return &mcp.Refusal{Status: http.StatusServiceUnavailable, Later: true, RetryAfter: time.Second,
		Err: wire.Errorf(spec.CodeInternal, "server %q: %v; try again", s.o.Name, why)}
}

// belongs reports whether a request has to be answered where its principal is served. One that
// continues a call has not, nor one whose changes the owner watches anyway, nor that of a
// session which has its own upstream.
func (s *Server) belongs(ctx context.Context, m *wire.Message, era spec.Era) bool {
	switch {
	case era == spec.Modern:
		return m.Method != spec.MethodListen && namedHolder(m.Method, m.Params) == ""
	case m.Method == spec.MethodInitialize:
		return !s.ownSessions(ctx)
	}
	return false // its session is here
}

// claim returns the name by which replicas claim what a principal has at the server; empty if
// nobody claims it.
func (s *Server) claim(p mcp.Principal) string {
	if s.o.HoldFor == 0 {
		return ""
	}
	return s.o.ClaimFor(p)
}

// ownSessions reports whether each legacy client has a session of its own at the server: it is
// served where it is opened. It waits until the era of the server is known, which decides that; of
// one that nobody has asked yet, the replica finds it out that serves the principal.
func (s *Server) ownSessions(ctx context.Context) bool {
	if s.o.Untried != nil && s.o.Untried() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, verdictWait)
	defer cancel()
	for s.o.Back.Era() == spec.Unknown && errors.Is(s.o.Back.Err(), mcp.ErrStarting) {
		if wake.Wait(ctx, verdictPoll) != nil {
			break
		}
	}
	return s.o.OwnSessions()
}

// heir returns which replica a session goes on at once this one has ended.
func (s *Server) heir(h legacyfront.Handover) replicas.Replica {
	if name := s.claim(h.Opener.Principal); name != "" {
		return s.g.placement.Heir(name)
	}
	return s.g.opts.Peers.View().Pick(string(h.ID))
}

// took has the calls of a session's principal answered here that goes on here.
func (s *Server) took(h legacyfront.Handover) {
	if name := s.claim(h.Opener.Principal); name != "" {
		s.g.placement.Find(context.Background(), name, s.o.HoldFor)
	}
}

// mayRepeat reports whether a request may be sent again that may have been served: one that
// reads, or opens or ends what can be opened or ended twice, and does not continue a call.
func mayRepeat(r *http.Request, m *wire.Message) bool {
	if r.Method != http.MethodPost {
		return true
	}
	if _, continues := wire.GetString(m.Params, "requestState"); continues {
		return false
	}
	return m.Kind() == wire.Request && (spec.Repeatable(m.Method) || m.Method == spec.MethodInitialize || m.Method == spec.MethodPing)
}
