package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/owner"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/placement"
	"github.com/mcpbridge/mcpbridge/internal/replicas/source"
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

// A placer finds the replica on which a server serves a profile.
type placer struct{ *server }

// placed forwards a request to the replica that serves all calls of its profile, if the server
// is one of which each profile has a state, and reports whether it has.
func (s placer) placed(w http.ResponseWriter, r *http.Request, m *wire.Message, body []byte, modern bool, sender mcp.Sender) bool {
	if s.together.hold == 0 || s.g.peers == nil || m.Kind() != wire.Request {
		return false
	}
	name, ok := s.placeOf(r.Context(), m, modern, sender)
	if !ok {
		return false
	}
	to := s.g.placement.Find(r.Context(), name, s.together.hold)
	for range 2 {
		if to.Instance == s.g.instance || sender.Via != "" { // what was forwarded is served here
			return false
		}
		err := forwarder(s).forward(w, r, sender, peer.Forward{To: to, Path: streamablePath + s.name, Body: body})
		if gone := (*peer.GoneError)(nil); !errors.As(err, &gone) {
			return true
		}
		to = s.g.placement.Lost(r.Context(), name, to)
	}
	return false
}

// placeOf returns the name of a request's profile for all replicas. It reports false for a
// request that is served where it is: one that continues a call, one whose changes the owner
// watches anyway, and that of a session which has its own upstream.
func (s placer) placeOf(ctx context.Context, m *wire.Message, modern bool, sender mcp.Sender) (name string, ok bool) {
	req := &mcp.Request{Method: m.Method, Era: spec.Modern, Principal: sender.Principal, Identity: sender.Identity, Share: sender.Share}
	switch {
	case modern && m.Method == spec.MethodListen:
		return "", false
	case modern:
		state, _ := wire.GetString(m.Params, "requestState")
		req.Capabilities, req.ClientInfo = wire.Get(m.Meta, spec.MetaClientCapabilities), wire.Get(m.Meta, spec.MetaClientInfo)
		if peer.OfState(state) != "" || !wire.IsObject(req.Capabilities) {
			return "", false
		}
	case m.Method == spec.MethodInitialize:
		s.awaitVerdict(ctx)
		legacyfront.Opening(req, m)
	default:
		return "", false // its session is here
	}
	return s.nameOf(req)
}

// nameOf returns the name of the profile of a request, if other replicas may have it.
func (s placer) nameOf(req *mcp.Request) (name string, ok bool) {
	if err := s.profiles.admit(req); err != nil || req.Profile.Revision != "" || req.Profile.Single {
		return "", false
	}
	return source.Name(req.Profile.Scope), true
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
	if name, ok := s.nameOfSession(h); ok {
		return s.g.placement.Heir(name)
	}
	return s.g.peers.View().Pick(string(h.ID))
}

// took has the calls of a session's profile served here that goes on here.
func (s placer) took(h legacyfront.Handover) {
	if name, ok := s.nameOfSession(h); ok {
		s.g.placement.Find(context.Background(), name, s.together.hold)
	}
}

func (s placer) nameOfSession(h legacyfront.Handover) (name string, ok bool) {
	if s.together.hold == 0 {
		return "", false
	}
	return s.nameOf(&mcp.Request{Method: spec.MethodInitialize, Era: spec.Legacy, Revision: h.Revision, Capabilities: h.Capabilities,
		ClientInfo: h.ClientInfo, Principal: h.Opener.Principal, Identity: h.Opener.Identity, Share: h.Opener.Share, Session: h.Name})
}

// sharedTasks returns where all replicas find whose a task is; nil for one replica.
func (g *Gateway) sharedTasks() *owner.Shared {
	if g.peers == nil {
		return nil
	}
	return &owner.Shared{Records: g.peers.Engine(), Unknown: []error{replicas.ErrNotFound, replicas.ErrNoClaims}}
}
