package router

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/owner"
	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/placement"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

const (
	// verdictWait bounds how long initialize waits for the era of a server that has just
	// been started, and verdictPoll is how often it looks.
	verdictWait = 10 * time.Second
	verdictPoll = 20 * time.Millisecond
)

// newPlacement returns who knows where calls of servers with a state belong; nil without other
// replicas. What watches profiles claims the same names.
func newPlacement(o *Options, claims placement.Claims) (*placement.Table, error) {
	if o.Peers == nil {
		return nil, nil
	}
	var full transport.WarnLimiter
	return placement.New(placement.Options{Engine: o.Peers.Engine(), Claims: claims, Logger: o.Logger, Full: func() {
		o.Metrics.Limit("", "placed_profiles")
		full.Warn(o.Logger, "too many profiles have a replica that serves them: the one that was not used for longest is forgotten, and claimed again at its next call")
	}})
}

// A placer finds the replica on which a server with a state serves a principal.
type placer struct{ *server }

// placed forwards a request to the replica that serves all calls of its principal, if the
// server is one with a state, and reports whether it has.
func (s placer) placed(w http.ResponseWriter, r *http.Request, m *wire.Message, body []byte, modern bool, sender mcp.Sender) bool {
	if !s.mayPlace(sender) || m.Kind() != wire.Request || !s.belongs(r.Context(), m, modern) {
		return false
	}
	return s.send(r.Context(), sender.Principal, 0, func(to replicas.Replica) (gone bool) {
		return forwarder(s).forward(w, r, sender, peer.Forward{To: to, Path: streamable.path(s.name), Body: body, Again: mayRepeat(r, m)}) != nil
	})
}

// placedEvents does so with the GET of an HTTP+SSE stream, if the client has not a session of
// its own at the server. What it is told to post to is below the same prefix.
func (s placer) placedEvents(w http.ResponseWriter, r *http.Request, sender mcp.Sender) bool {
	if !s.mayPlace(sender) || s.ownSessions(r.Context()) {
		return false
	}
	out := *r
	out.Header = r.Header.Clone()
	out.Header.Set(prefixHeader, prefixOf(r))
	return s.send(r.Context(), sender.Principal, sinceOpenings, func(to replicas.Replica) (gone bool) {
		return forwarder(s).forward(w, &out, sender, peer.Forward{To: to, Path: events.path(s.name), Part: partPath + s.name, Again: true}) != nil
	})
}

// mayPlace reports whether a request may be another replica's: what was forwarded is served
// here.
func (s placer) mayPlace(sender mcp.Sender) bool {
	return s.together.hold > 0 && s.g.peers != nil && sender.Via == ""
}

// send forwards what a principal has sent to the replica that serves it: forward reports whether
// that one is gone, and the next one is to be asked. It reports false if this one serves it, or if the other is of a revision
// before since.
func (s placer) send(ctx context.Context, p mcp.Principal, since int, forward func(to replicas.Replica) (gone bool)) bool {
	name, ok := s.nameFor(p)
	if !ok {
		return false
	}
	to := s.g.placement.Find(ctx, name, s.together.hold)
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

// belongs reports whether a request has to be served where its principal is. One that continues
// a call has not, nor one whose changes the owner watches anyway, nor that of a session which
// has its own upstream.
func (s placer) belongs(ctx context.Context, m *wire.Message, modern bool) bool {
	switch {
	case modern:
		state, _ := wire.GetString(m.Params, "requestState")
		return m.Method != spec.MethodListen && peer.OfState(state) == ""
	case m.Method == spec.MethodInitialize:
		return !s.ownSessions(ctx)
	}
	return false // its session is here
}

// nameFor returns the name by which replicas claim what a principal has at the server. It
// reports false if each request has a session of its own.
func (s placer) nameFor(p mcp.Principal) (name string, ok bool) {
	switch s.profiles.isolation {
	case IsolateRequest:
		return "", false
	case IsolateNothing:
		p = ""
	}
	return s.together.claims.OfPrincipal(p), s.together.hold > 0
}

// ownSessions reports whether each legacy client has a session of its own at the server: it is
// served where it is opened.
func (s placer) ownSessions(ctx context.Context) bool {
	s.awaitVerdict(ctx)
	return s.profiles.perSession()
}

// awaitVerdict waits until the era of the server is known, which decides whether a legacy
// client has a session of its own there.
func (s placer) awaitVerdict(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, verdictWait)
	defer cancel()
	for s.back.Era() == spec.Unknown && errors.Is(s.back.Err(), mcp.ErrStarting) {
		if backoff.Wait(ctx, verdictPoll) != nil {
			return
		}
	}
}

// heir returns which replica a session goes on at once this one has ended.
func (s placer) heir(h legacyfront.Handover) replicas.Replica {
	if name, ok := s.nameFor(h.Opener.Principal); ok {
		return s.g.placement.Heir(name)
	}
	return s.g.peers.View().Pick(string(h.ID))
}

// took has the calls of a session's profile served here that goes on here.
func (s placer) took(h legacyfront.Handover) {
	if name, ok := s.nameFor(h.Opener.Principal); ok {
		s.g.placement.Find(context.Background(), name, s.together.hold)
	}
}

// sharedTasks returns where all replicas find whose a task is; nil for one replica.
func (g *Gateway) sharedTasks() *owner.Shared {
	if g.peers == nil {
		return nil
	}
	return &owner.Shared{Records: g.peers.Engine(), Unknown: []error{replicas.ErrNotFound, replicas.ErrNoClaims}}
}
