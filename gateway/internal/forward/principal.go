package forward

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

const (
	// verdictWait bounds how long initialize waits for the era of a server that has just
	// been started, and verdictPoll is how often it looks.
	verdictWait = 10 * time.Second
	verdictPoll = 20 * time.Millisecond
)

// messageByPrincipal forwards a request to the replica that serves all calls of its principal.
func (s *Server) messageByPrincipal(q *Request, m *wire.Message, era spec.Era) (answered bool) {
	if m.Kind() != wire.Request || !s.belongs(q.R.Context(), m, era) {
		return false
	}
	return s.place(q, 0, func(to replicas.Replica) (gone bool) {
		return s.forward(q, peer.Forward{To: to, Body: m.Text, Again: mayRepeat(q.R, m)}) != nil
	})
}

// eventsByPrincipal does so with the GET of an HTTP+SSE stream, if the client has not a
// session of its own at the server.
func (s *Server) eventsByPrincipal(q *Request) (answered bool) {
	if s.ownSessions(q.R.Context()) {
		return false
	}
	return s.place(q, sinceOpenings, func(to replicas.Replica) (gone bool) {
		return s.forward(q, peer.Forward{To: to, Part: s.partPath(), Again: true}) != nil
	})
}

// place forwards what a principal has sent to the replica that serves it: forward reports
// whether that one is gone, and the next one is to be asked. It reports false if this one
// serves it, or if the other is of a revision before since.
func (s *Server) place(q *Request, since int, forward func(to replicas.Replica) (gone bool)) (answered bool) {
	name := s.claim(q.Sender.Principal)
	if name == "" {
		return false
	}
	ctx := q.R.Context()
	to := s.g.placement.Find(ctx, name, s.o.HoldFor)
	for range 2 {
		if to.Instance == s.g.instance || to.Revision < since {
			return false
		}
		if gone := forward(to); !gone {
			return true
		}
		to = s.g.placement.Lost(ctx, name, to)
	}
	return false
}

// belongs reports whether a request has to be answered where its principal is served. One that
// continues a call has not, nor one whose changes the owner watches anyway, nor that of a
// session which has its own upstream.
func (s *Server) belongs(ctx context.Context, m *wire.Message, era spec.Era) bool {
	switch {
	case era == spec.Modern:
		state, _ := wire.GetString(m.Params, "requestState")
		return m.Method != spec.MethodListen && peer.OfState(state) == ""
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
// served where it is opened. It waits until the era of the server is known, which decides that.
func (s *Server) ownSessions(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, verdictWait)
	defer cancel()
	for s.o.Back.Era() == spec.Unknown && errors.Is(s.o.Back.Err(), mcp.ErrStarting) {
		if backoff.Wait(ctx, verdictPoll) != nil {
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
