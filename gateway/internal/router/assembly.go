package router

import (
	"context"
	"net/http"

	"github.com/mcpbridge/mcpbridge/gateway/internal/access"
	"github.com/mcpbridge/mcpbridge/gateway/internal/forward"
	"github.com/mcpbridge/mcpbridge/gateway/internal/owner"
	"github.com/mcpbridge/mcpbridge/gateway/internal/source"
	"github.com/mcpbridge/mcpbridge/gateway/internal/visit"
	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
	modernfront "github.com/mcpbridge/mcpbridge/modern/front"
)

// assemble puts what controls and keeps results before the back of a server, and the fronts
// before that.
func assemble(s *server, so *ServerOptions) (err error) {
	s.access = newControl(so, s.g.opts.Metrics)
	s.handler = s.g.hub.Cache().Handler(so.Name, so.Settings.Kept(), placed{s})
	if s.owners, err = newOwners(s, so); err != nil {
		return err
	}
	s.handler = s.access.Handler(visit.Handler(visit.Options{Server: so.Name, Where: so.Visit, Era: s.back.Era, Logins: so.UserLogins}, s.owners.Handler(s.handler)))
	if s.group != nil {
		s.handler = s.group.Apps(s.handler)
	}
	s.userLogins = so.UserLogins
	if s.legacy, err = newLegacyFront(s, so); err != nil {
		return err
	}
	if s.modern, err = newModernFront(s, so); err == nil {
		s.together.forward = newForwarded(s, so)
	}
	return err
}

// placed is the back of a server as one of several replicas has it.
type placed struct{ s *server }

// Serve implements [mcp.Handler].
func (p placed) Serve(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	if f := p.s.together.forward; f != nil {
		return f.Serve(ctx, req, c, p.s.back)
	}
	return p.s.back.Serve(ctx, req, c)
}

// Describe implements [mcp.Describer].
func (p placed) Describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	if f := p.s.together.forward; f != nil {
		return f.Describe(ctx, req, p.s.back)
	}
	return p.s.back.Describe(ctx, req)
}

// openBack opens the back of a server, and what watches it together with other replicas.
func openBack(s *server, so *ServerOptions) (err error) {
	h := s.g.hub
	all, local := heeded{h, s}, heeded{h.Local(), s}
	if so.Group != nil {
		s.group, err = openGroup(s.g, s.name, so.Group, all)
		s.back = s.group
		return err
	}
	changes, cues := tellOthers(s, so, all), tellOthers(s, so, local)
	if s.g.sharing.sources == nil || so.OpenPeer == nil {
		s.back, err = so.Open(changes)
		return err
	}
	s.together.source = s.g.sharing.sources.Open(source.ServerOptions{
		Name: so.Name, Claims: s.together.claims, Open: so.OpenPeer, Changes: changes, Local: local, Cues: cues, WantedByPeers: h.WantedByPeers,
	})
	if s.back, err = so.Open(s.together.source.Changes()); err == nil {
		s.together.source.Use(s.back)
		s.together.endpoint, err = newEndpoint(s, so)
	}
	return err
}

// heeded has the modern front of a server heed a change before it is told.
type heeded struct {
	mcp.Changes
	s *server
}

// Publish implements [mcp.Changes].
func (h heeded) Publish(ev fanout.Event) {
	if ev.Topic.Kind == fanout.ToolsListChanged {
		h.s.modern.ToolsChanged(ev.Topic.Scope)
	}
	h.Changes.Publish(ev)
}

// tellOthers returns what has other replicas evict cached results before changes are passed
// on, if results of the server are kept.
func tellOthers(s *server, so *ServerOptions, next mcp.Changes) mcp.Changes {
	if s.g.sharing.evictions == nil || len(so.Settings.Kept()) == 0 {
		return next
	}
	c := s.g.sharing.evictions.Open(so.Name, next)
	s.together.told = append(s.together.told, c)
	return c
}

// newEndpoint returns what watches the server for other replicas, and serves their groups.
func newEndpoint(s *server, so *ServerOptions) (*source.Endpoint, error) {
	g := s.g
	return source.NewEndpoint(source.EndpointOptions{
		Server: watchedHere{s, s.together.source}, Hub: g.hub, Profiles: s.profiles.Candidates, Limits: func() limits.Set { return g.now().opts.Limits },
		Handler: servedHere{s}, Describer: s.back, Settings: so.Settings, Era: s.back.Era, Sealer: g.sealer,
		Memory: s.memory, Streams: &s.streams, Logger: g.opts.Logger, Metrics: g.opts.Metrics,
	})
}

// newForwarded returns what has requests to the server answered where they belong; nil without
// other replicas.
func newForwarded(s *server, so *ServerOptions) *forward.Server {
	if s.g.forward == nil {
		return nil
	}
	_, whole := s.guard.Auth.(auth.MTLS)
	return s.g.forward.Open(forward.ServerOptions{
		Name: s.name, Front: s.legacy, Back: s.back, Life: s.life, Streams: &s.streams, Whole: whole,
		HoldFor: so.HoldFor, Remote: s.remote(), ClaimFor: s.claimFor, OwnSessions: s.profiles.PerSession, Untried: untried(s.back),
		Parse: s.parse,
		RefuseBody: func(w http.ResponseWriter, r *http.Request, err error) {
			s.g.now().bodies.Refuse(w, r, s.limits, err)
		},
	})
}

// untried returns what reports whether nothing is known of a server that nobody has asked yet; nil
// for one that is asked at the start.
func untried(back mcp.Back) func() bool {
	d, ok := back.(*detect.Detector)
	if !ok || !d.Asleep() {
		return nil
	}
	return func() bool {
		d.Learn()
		return d.Asleep() && d.Era() == spec.Unknown
	}
}

// claimFor returns the name by which replicas claim what a principal has at the server; empty
// if each request has a session of its own.
func (s *server) claimFor(p mcp.Principal) string {
	switch s.profiles.Isolation() {
	case settings.IsolateRequest:
		return ""
	case settings.IsolateNothing:
		p = ""
	}
	return s.together.claims.OfPrincipal(p)
}

// newOwners returns what keeps tasks and requestStates from other principals; nil if there
// are none.
func newOwners(s *server, so *ServerOptions) (*owner.Guard, error) {
	g := s.g
	if by := authOf(*so, s.opts); by == nil || by == auth.None {
		return nil, nil
	}
	return owner.New(owner.Options{
		Shared: sharedTasks(g.peers),
		Unshared: func(err error) {
			g.opts.Logger.Warn("other replicas don't know whose a task is", "upstream", so.Name, "err", err)
		},
		Server:  so.Name,
		Account: func(share mcp.Share) *budget.Account { return g.budget.Account(share) },
		Sealer:  g.sealer,
		Era:     s.back.Era,
		Full:    func() { g.opts.Metrics.Limit(so.Name, "task_owners") },
		NoTasks: !so.Settings.HoldsTasks(),
	})
}

// sharedTasks returns where all replicas find whose a task is; nil for one replica.
func sharedTasks(peers *peer.Group) *owner.Shared {
	if peers == nil {
		return nil
	}
	return &owner.Shared{Records: peers.Engine(), Unknown: []error{replicas.ErrNotFound, replicas.ErrNoClaims}}
}

// newControl returns what controls the access to the server; nil for nothing.
func newControl(so *ServerOptions, metrics mcp.Metrics) *access.Control {
	o := so.Access
	o.Server, o.Metrics = so.Name, metrics
	return access.New(o)
}

// newLegacyFront and newModernFront build both fronts: one endpoint serves both eras.
func newLegacyFront(s *server, so *ServerOptions) (*legacyfront.Front, error) {
	g, opts := s.g, s.opts
	return legacyfront.New(legacyfront.Options{
		Name:         so.Name,
		Handler:      s,
		Describer:    s,
		Subscriber:   s,
		Relayer:      s,
		Admit:        s.admit,
		Clients:      s,
		TellLosses:   s.group != nil,
		MarksTools:   s.group != nil,
		Memory:       s.memory,
		Instance:     g.instance,
		Streams:      &s.streams,
		Until:        g.expiry.Until,
		Limits:       opts.Limits,
		Idle:         opts.SessionIdle,
		Check:        s.check,
		WriteTimeout: opts.WriteTimeout,
		KeepAlive:    opts.KeepAlive,
		Drain:        opts.Drain,
		Settings:     so.Settings,
		Quirks:       so.Quirks,
		Ended:        s.sessionEnded,
		Logger:       g.opts.Logger,
		Metrics:      g.opts.Metrics,
	})
}

func newModernFront(s *server, so *ServerOptions) (*modernfront.Front, error) {
	g, opts := s.g, s.opts
	return modernfront.New(modernfront.Options{
		Name:         so.Name,
		Revisions:    spec.AllRevisions(),
		Handler:      s,
		Describer:    s,
		Subscriber:   s,
		Admit:        s.admit,
		Memory:       s.memory,
		Settings:     so.Settings,
		Quirks:       so.Quirks,
		Upstream:     s.back.Era,
		Group:        s.group != nil,
		MemberEra:    s.group.memberEra(),
		WriteTimeout: opts.WriteTimeout,
		KeepAlive:    opts.KeepAlive,
		Streams:      &s.streams,
		Limits:       opts.Limits,
		Sealer:       g.sealer,
		Replicas:     g.peers != nil,
		Logger:       g.opts.Logger,
		Metrics:      g.opts.Metrics,
	})
}
