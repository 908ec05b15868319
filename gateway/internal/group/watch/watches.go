package watch

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// Options configure Watches. All are required.
type Options struct {
	Name    string // the group's
	View    *View
	Changes mcp.Changes // gets the group's
	// HandedOut is told of each URI that a member's update names beside the one that is followed
	// for the profile. Nil tells nobody.
	HandedOut func(p *mcp.Profile, member, uri string)
	// Logged returns the params of a log message of a member as clients get them. Nil leaves them.
	Logged  func(member string, params []byte) []byte
	Logger  *slog.Logger
	Metrics mcp.Metrics
}

// Watches are those of a group, one for each profile that follows something. They are safe for
// concurrent use.
type Watches struct {
	opts   Options
	table  *subscribe.Table[state, *watch]
	routes routes
	view   atomic.Pointer[View]
	looks  atomic.Int64 // how often Look was called
}

// New returns Watches without any. The caller calls Close.
func New(o Options) *Watches {
	ws := &Watches{opts: o}
	ws.view.Store(o.View)
	up := &upstream.Options{
		Name: o.Name, Metrics: o.Metrics, Changes: o.Changes,
		// What members tell of sub-resources is told as they do.
		Settings: settings.Server{Subresources: fanout.SubresourcesAsSent},
	}
	up.Fill(spec.Unknown)
	up.Logger = o.Logger.With("upstream", o.Name)
	ws.table = subscribe.NewTable(up, askedAgain, func(b *book, p mcp.Profile) *watch { return newWatch(ws, b, p) })
	return ws
}

// Watch implements [mcp.Source]: it returns what members tell of, within the group's patience.
// Lists are always accepted, and so are resources of members that are away. routes says whom to ask
// for resources; those without one are refused.
func (ws *Watches) Watch(ctx context.Context, p mcp.Profile, want []fanout.Topic, routes map[fanout.Topic]*Route) ([]fanout.Topic, func(), error) {
	defer ws.routes.add(routes)()
	allowed := make([]fanout.Topic, 0, len(want))
	for _, t := range want {
		if t.Kind != fanout.ResourceUpdated || routes[t] != nil {
			allowed = append(allowed, t)
		}
	}
	return ws.table.Watch(ctx, p, allowed)
}

// Show has the group as it is from now on. Its clients are told that lists have changed.
func (ws *Watches) Show(v *View) {
	ws.view.Store(v)
	ws.table.Poke()
}

// Look has members that could not be asked asked at once: they may have been replaced.
func (ws *Watches) Look() {
	ws.looks.Add(1)
	ws.table.Poke()
}

// Close ends all watches, and waits for them.
func (ws *Watches) Close() { ws.table.Close() }
