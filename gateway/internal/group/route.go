package group

import (
	"context"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/watch"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Watch implements [mcp.Source]: it returns what members tell of, within the group's patience.
// Lists are always accepted, and so are resources of members that are away. What is subscribed to
// for a request has the context of [OnBehalf].
func (g *Group) Watch(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	b := g.back.Load()
	honored, release, err := g.watches.Watch(ctx, p, want, b.route(ctx, requestOf(ctx, p), want))
	for _, t := range honored {
		if t.Kind != fanout.ResourceUpdated && t.Kind != fanout.StateLost {
			b.short.followed(p.Scope, t.Kind)
		}
	}
	return honored, release, err
}

type requestKey struct{}

// OnBehalf returns the context of what is subscribed to for a request.
func OnBehalf(ctx context.Context, req *mcp.Request) context.Context {
	return context.WithValue(ctx, requestKey{}, req)
}

// requestOf returns the request on whose behalf something is subscribed to in a profile.
func requestOf(ctx context.Context, p mcp.Profile) *mcp.Request {
	req := mcp.Request{
		Method: spec.MethodListen, Era: spec.Modern, Revision: spec.LatestModern,
		Principal: p.Share.Principal, Share: p.Share, Capabilities: p.Capabilities, ClientInfo: p.ClientInfo,
	}
	if of, ok := ctx.Value(requestKey{}).(*mcp.Request); ok {
		req = *of
	}
	req.Profile = p
	return &req
}

// told gets the changes of a group, which makes use of them before clients do.
type told struct{ *Group }

// Publish implements [mcp.Changes].
func (t told) Publish(ev fanout.Event) {
	t.back.Load().listChanged(ev.Topic.Scope, ev.Topic.Kind)
	t.changes.Publish(ev)
}

// Wanted implements [mcp.Changes].
func (t told) Wanted(topic fanout.Topic) bool { return t.changes.Wanted(topic) }

// End implements [mcp.Changes].
func (t told) End(topic fanout.Topic, reason error) { t.changes.End(topic, reason) }

// view returns what is followed of the group.
func (b *Back) view() *watch.View {
	v := &watch.View{Members: b.roster.names, Patience: b.opts.Patience}
	v.Find = func(name string) (watch.Member, error) { return b.roster.named(name) }
	v.Holders = func(p *mcp.Profile, uri string) []string {
		return b.roster.namesAt(b.uris.Holders(p, b.roster.names, uri))
	}
	return v
}

// route finds the routes of what is wanted. Those of resources are to the members of members that have them, whose lists
// are read if they are not known, or else of all members with subscriptions. A resource that a
// member would be asked for, and that the sender of req may not follow there, has none.
func (b *Back) route(ctx context.Context, req *mcp.Request, want []fanout.Topic) map[fanout.Topic]*watch.Route {
	by := time.Now().Add(b.opts.Patience)
	out := make(map[fanout.Topic]*watch.Route)
	refused := make(map[int][]string) // by the place of the member
	learned, everywhere := false, sync.OnceValue(func() []int { return b.subscribable(req) })
	for _, t := range want {
		if t.Kind != fanout.ResourceUpdated {
			out[t] = &watch.Route{By: by}
			continue
		}
		if _, sure := b.uris.Lister(&req.Profile, b.roster.names, t.URI, false); !sure && !learned {
			learned = true
			b.listings.learn(ctx, b.opts.Patience/2, req, spec.MethodResourcesList, spec.MethodResourcesTemplates)
		}
		holders := b.uris.Holders(&req.Profile, b.roster.names, t.URI)
		known := len(holders) > 0
		if !known {
			holders = everywhere()
		}
		switch i, no := b.refusing(req, holders, t.URI); {
		case no:
			refused[i] = append(refused[i], t.URI)
		case len(holders) > 0:
			out[t] = &watch.Route{Members: b.roster.namesAt(holders), Known: known, By: by}
		}
	}
	b.tellRefused(ctx, req, refused)
	return out
}

// tellRefused has members' audit logs say what they have refused to a client, once for a request: not
// when what it follows is subscribed to again.
func (b *Back) tellRefused(ctx context.Context, req *mcp.Request, refused map[int][]string) {
	if ctx.Value(requestKey{}) == nil {
		return
	}
	for i, uris := range refused {
		if m, err := b.roster.at(i); err == nil {
			m.Refused(ctx, req, uris)
		}
	}
}

// subscribable returns the places of the members that may have subscriptions to resources.
func (b *Back) subscribable(req *mcp.Request) (places []int) {
	for i := range b.roster.names {
		m, err := b.roster.at(i)
		if err != nil {
			continue
		}
		d, err := m.Describe(mcp.Known, req)
		caps := mcp.ServerCapabilities{}
		if err == nil && d != nil {
			caps = mcp.ReadServerCapabilities(d.Capabilities)
		}
		if caps.Raw == nil || caps.Subscribe {
			places = append(places, i)
		}
	}
	return places
}

// Hides reports whether the sender of a request must not hear of a change of a sub-resource, since a
// member that may have told it does not let it follow that.
func (g *Group) Hides(req *mcp.Request, ev fanout.Event) bool {
	b := g.back.Load()
	holders := b.uris.Holders(&req.Profile, b.roster.names, ev.Topic.URI)
	if len(holders) == 0 {
		holders = b.subscribable(req)
	}
	_, refused := b.refusing(req, holders, ev.URI)
	return refused
}

// refusing returns the first of members that does not let the sender of a request follow a resource.
func (b *Back) refusing(req *mcp.Request, places []int, uri string) (place int, refused bool) {
	for _, i := range places {
		if m, err := b.roster.at(i); err != nil || !m.Follows(req, uri) {
			return i, true
		}
	}
	return 0, false
}
