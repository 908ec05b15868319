package group

import (
	"context"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/gateway/internal/group/watch"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A Group is a [Back] that can be replaced while clients go on: what they follow stays. It is an
// [mcp.Back], and safe for concurrent use.
type Group struct {
	back    atomic.Pointer[Back]
	changes mcp.Changes
	watches *watch.Watches
}

var (
	_ mcp.Back           = (*Group)(nil)
	_ mcp.ClientFollower = (*Group)(nil)
)

// Open returns a Group that reports changes to c. The caller calls Close.
func Open(o Options, c mcp.Changes) (*Group, error) {
	b, err := New(o, c)
	if err != nil {
		return nil, err
	}
	return newGroup(b, c), nil
}

func newGroup(b *Back, c mcp.Changes) *Group {
	g := &Group{changes: c}
	g.back.Store(b)
	g.watches = watch.New(watch.Options{
		Name: b.opts.Name, View: b.view(), Changes: told{g}, HandedOut: g.handedOut, Logged: owners.NameLogger, Logger: b.opts.Logger, Metrics: b.opts.Metrics,
	})
	return g
}

// handedOut remembers that an update of a member has named a URI.
func (g *Group) handedOut(p *mcp.Profile, member, uri string) {
	if b := g.back.Load(); b.roster.place(member) >= 0 {
		b.uris.HandOut(p, member, uri)
	}
}

// Update has the Group be configured by other options, of the same name: members may have come,
// gone, or another order. Clients are told that its lists have changed (G-18).
func (g *Group) Update(o Options) error {
	former := g.back.Load()
	b, err := newBack(o, g.changes, former)
	if err != nil {
		return err
	}
	former.next.Store(b)
	g.back.Swap(b).close()
	g.watches.Show(b.view())
	return nil
}

// Look has members that could not be found, or that were replaced, looked for at once.
func (g *Group) Look() {
	g.back.Load().finder.tables.Clear()
	g.watches.Look()
}

// Serve implements [mcp.Handler].
func (g *Group) Serve(ctx context.Context, req *mcp.Request, c mcp.Caller) (*mcp.Result, error) {
	return g.back.Load().Serve(ctx, req, c)
}

// Describe implements [mcp.Describer].
func (g *Group) Describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	return g.back.Load().Describe(ctx, req)
}

// RootsChanged implements [mcp.ClientFollower]: each member is told.
func (g *Group) RootsChanged(req *mcp.Request) {
	g.back.Load().roster.each(func(m Member) { m.RootsChanged(req) })
}

// LevelChanged implements [mcp.ClientFollower]: each member is told.
func (g *Group) LevelChanged(req *mcp.Request) {
	g.back.Load().roster.each(func(m Member) { m.LevelChanged(req) })
}

// ClientLeft implements [mcp.ClientFollower]: each member is told.
func (g *Group) ClientLeft(req *mcp.Request) {
	g.back.Load().roster.each(func(m Member) { m.ClientLeft(req) })
}

// Start implements [mcp.Back]. Members are started as servers of the gateway.
func (g *Group) Start() {}

// Era implements [mcp.Back].
func (g *Group) Era() spec.Era { return g.back.Load().roster.era() }

// Err implements [mcp.Back].
func (g *Group) Err() error {
	b := g.back.Load()
	return b.roster.err(b.opts.Require)
}

// Close implements [mcp.Back].
func (g *Group) Close(context.Context) error {
	g.watches.Close()
	g.back.Load().close()
	return nil
}
