package router

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/gateway/internal/access"
	"github.com/mcpbridge/mcpbridge/gateway/internal/listen"
	"github.com/mcpbridge/mcpbridge/gateway/internal/owner"
	"github.com/mcpbridge/mcpbridge/gateway/internal/source"
	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
	modernfront "github.com/mcpbridge/mcpbridge/modern/front"
)

// An assembly puts the parts of a server together.
type assembly struct {
	*server
	so *ServerOptions
}

// assemble puts what controls and keeps results before the back, and the fronts before that.
func (a *assembly) assemble() (err error) {
	a.access = a.control()
	a.handler = a.g.hub.Cache().Handler(a.so.Name, a.so.Keep, a.back)
	if a.owners, err = a.newOwners(); err != nil {
		return err
	}
	a.handler = a.access.Handler(a.owners.Handler(a.handler))
	return a.openFronts()
}

// openBack opens the back of a server, and what watches it together with other replicas.
func (a *assembly) openBack() (err error) {
	h := a.g.hub
	changes, cues := a.tellOthers(h), a.tellOthers(h.Local())
	if a.g.sharing.sources == nil || a.so.OpenPeer == nil {
		a.back, err = a.so.Open(changes)
		return err
	}
	a.together.source = a.g.sharing.sources.Open(source.ServerOptions{
		Name: a.so.Name, Claims: a.together.claims, Open: a.so.OpenPeer, Changes: changes, Local: h.Local(), Cues: cues, WantedByPeers: h.WantedByPeers,
	})
	if a.back, err = a.so.Open(a.together.source.Changes()); err == nil {
		a.together.source.Use(a.back)
		a.together.endpoint, err = a.openEndpoint()
	}
	return err
}

// tellOthers returns what has other replicas evict cached results before changes are passed
// on, if results of the server are kept.
func (a *assembly) tellOthers(next mcp.Changes) mcp.Changes {
	if a.g.sharing.evictions == nil || len(a.so.Keep) == 0 {
		return next
	}
	c := a.g.sharing.evictions.Open(a.so.Name, next)
	a.together.told = append(a.together.told, c)
	return c
}

func (a *assembly) openEndpoint() (*listen.Endpoint, error) {
	g := a.g
	return listen.New(listen.Options{
		Server: watchedHere{a.server, a.together.source}, Hub: g.hub, Profiles: a.profiles.candidates,
		Memory: a.memory, Streams: &a.streams, Logger: g.opts.Logger, Metrics: g.opts.Metrics,
	})
}

// newOwners returns what keeps tasks and requestStates from other principals; nil if there
// are none.
func (a *assembly) newOwners() (*owner.Guard, error) {
	g := a.g
	if by := authOf(*a.so, a.opts); by == nil || by == auth.None {
		return nil, nil
	}
	return owner.New(owner.Options{
		Shared: g.sharedTasks(),
		Unshared: func(err error) {
			g.opts.Logger.Warn("other replicas don't know whose a task is", "upstream", a.so.Name, "err", err)
		},
		Server:  a.so.Name,
		Account: func(share mcp.Share) *budget.Account { return g.budget.Account(share) },
		Sealer:  g.sealer,
		Era:     a.back.Era,
		Full:    func() { g.opts.Metrics.Limit(a.so.Name, "task_owners") },
		NoTasks: slices.Contains(a.so.HideExtensions, spec.ExtensionTasks),
	})
}

// control returns what controls the access to the server; nil for nothing.
func (a *assembly) control() *access.Control {
	o := a.so.Access
	o.Server, o.Metrics = a.so.Name, a.g.opts.Metrics
	return access.New(o)
}

// openFronts builds both fronts: one endpoint serves both eras.
func (a *assembly) openFronts() (err error) {
	if a.legacy, err = a.openLegacyFront(); err != nil {
		return err
	}
	a.modern, err = a.openModernFront()
	return err
}

func (a *assembly) openLegacyFront() (*legacyfront.Front, error) {
	g, opts := a.g, a.opts
	return legacyfront.New(legacyfront.Options{
		Name:            a.so.Name,
		Handler:         a.server,
		Describer:       a.server,
		Subscriber:      a.server,
		Relayer:         a.server,
		Command:         a.so.Command,
		Admit:           a.admit,
		Memory:          a.memory,
		Instance:        g.instance,
		Streams:         &a.streams,
		Until:           g.expiry.Until,
		MaxSessions:     opts.MaxSessions,
		MaxSessionsEach: opts.MaxSessionsEach,
		Idle:            opts.SessionIdle,
		MaxStored:       opts.MaxStored,
		MaxTopics:       opts.MaxTopics,
		Check:           a.check,
		WriteTimeout:    opts.WriteTimeout,
		KeepAlive:       opts.KeepAlive,
		Drain:           opts.Drain,
		StartTimeout:    a.so.StartTimeout,
		LogLevel:        a.so.LogLevel,
		Logger:          g.opts.Logger,
		Metrics:         g.opts.Metrics,
	})
}

func (a *assembly) openModernFront() (*modernfront.Front, error) {
	g, opts := a.g, a.opts
	return modernfront.New(modernfront.Options{
		Name:          a.so.Name,
		Revisions:     spec.AllRevisions(),
		Handler:       a.server,
		Describer:     a.server,
		Subscriber:    a.server,
		Admit:         a.admit,
		Memory:        a.memory,
		NoTasks:       slices.Contains(a.so.HideExtensions, spec.ExtensionTasks),
		Upstream:      a.back.Era,
		WriteTimeout:  opts.WriteTimeout,
		KeepAlive:     opts.KeepAlive,
		Streams:       &a.streams,
		MaxParked:     opts.MaxParked,
		MaxParkedEach: opts.MaxParkedEach,
		MaxTopics:     opts.MaxTopics,
		Gather:        a.so.Gather,
		ParkedTTL:     a.so.ParkedTTL,
		Sealer:        g.sealer,
		Replicas:      g.peers != nil,
		Logger:        g.opts.Logger,
		Metrics:       g.opts.Metrics,
	})
}
