package main

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/mcpbridge/mcpbridge/internal/cmdhook"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/admin"
	"github.com/mcpbridge/mcpbridge/internal/observation/admin/live"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/release"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// adminOptions are those of the handler of the admin address.
func (d *daemon) adminOptions() admin.Options {
	c, inner := d.config, hook.Inner(d.gateway)
	feed := live.NewFeed(live.Options{Secrets: d.secrets, Observe: func(o trace.Observer, changes func(live.Change)) func() {
		return d.watch(inner, o, changes)
	}})
	feed.SetBodies(c.AdminBodies)
	return admin.Options{
		Source: states{d.gateway, &d.draining, &d.joined, &d.settled}, Metrics: d.gateway.MetricsHandler(), Token: c.AdminToken, MetricsToken: c.MetricsToken,
		Exposed: c.AdminExposed(), Debug: c.AdminDebug || !c.AdminExposed(),
		Gateway: shown{inner, c.AdminBodies}, Feed: feed, Version: release.Version(),
		Reload: d.reloadHandler(), LastReload: d.lastReload,
	}
}

// watch has a feed told of requests and changes, until stop is called.
func (d *daemon) watch(g cmdhook.Inner, o trace.Observer, changes func(live.Change)) (stop func()) {
	still := g.WatchChanges(func(ev fanout.Event, followers int) {
		changes(live.Change{Server: mcp.ServerOf(ev.Topic.Scope), Kind: ev.Topic.Kind.String(), URI: cmp.Or(ev.URI, ev.Topic.URI), Followers: followers})
	})
	unobserved := d.observers.Add(o)
	return func() {
		unobserved()
		still()
	}
}

// shown is a gateway as the admin page shows it, with what servers ask if texts.
type shown struct {
	g     cmdhook.Inner
	texts bool
}

// Status implements [admin.Gateway].
func (s shown) Status() *status.Snapshot { return s.g.Status(s.texts) }

// Ask implements [admin.Gateway].
func (s shown) Ask(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
	return s.g.Ask(ctx, server, method, params)
}
