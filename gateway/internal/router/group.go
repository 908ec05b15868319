package router

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A grouping is the group that a server of the gateway is.
type grouping struct {
	*group.Group
	g       *Gateway
	name    string
	members *members
}

// openGroup returns the grouping of a server, which reports changes to c.
func openGroup(g *Gateway, name string, o *group.Options, c mcp.Changes) (*grouping, error) {
	x := &grouping{g: g, name: name, members: &members{g: g, of: name}}
	var err error
	x.Group, err = group.Open(x.options(o), c)
	return x, err
}

func (x *grouping) options(o *group.Options) group.Options {
	out := *o
	out.Name, out.Find, out.Sealer, out.Logger, out.Metrics = x.name, x.members.find, x.g.sealer, x.g.opts.Logger, x.g.opts.Metrics
	return out
}

// memberEra returns what says of which era the member is that a request is for; nil for a single
// server.
func (x *grouping) memberEra() func(*mcp.Request) spec.Era {
	if x == nil {
		return nil
	}
	return x.EraOf
}

// checkMembers reports what is wrong with other members of a server that is kept as a group; nil for
// the same ones.
func checkMembers(s *server, o *group.Options) error {
	if o == nil {
		return nil
	}
	if s.group == nil {
		return fmt.Errorf("server %s: it is to be kept as a group, and is none", s.name)
	}
	_, err := group.New(s.group.options(o), s.g.hub)
	return err
}

// regroup has the groups of a table find their members in it.
func (t *table) regroup(log *slog.Logger) {
	for _, so := range t.opts.Servers {
		s := t.servers[so.Name]
		if s.group != nil {
			s.group.members.last.Store(nil) // so that an idle group keeps no table
		}
		switch {
		case s.group == nil || !so.Kept:
		case so.Group == nil:
			s.group.Look()
		default:
			if err := s.group.Update(s.group.options(so.Group)); err != nil { // they were checked
				log.Error("a group keeps its members", "upstream", so.Name, "err", err)
			}
		}
	}
}

// follow returns a subscription to a group whose members know on whose behalf it is: sub for a single
// server. What a member hides is not put into mail.
func (x *grouping) follow(req *mcp.Request, mail *fanout.Mailbox, sub mcp.Subscription) mcp.Subscription {
	if x == nil {
		return sub
	}
	by := *req // without its texts, which need not stay
	by.Params, by.Extra, by.ParamHeaders, by.Observed, by.Passage = nil, nil, nil, mcp.Observed{}, nil
	mail.Hide(func(ev fanout.Event) bool { return x.Hides(&by, ev) })
	o := &onBehalf{Subscription: sub, of: x.name, by: &by}
	o.observed.Store(&req.Observed)
	return o
}

// onBehalf is a subscription to a group.
type onBehalf struct {
	mcp.Subscription
	of       string // the group's name
	by       *mcp.Request
	observed atomic.Pointer[mcp.Observed] // of the request; nil after the first Add
}

// Add implements [mcp.Subscription].
func (o *onBehalf) Add(ctx context.Context, want mcp.Filter) (mcp.Filter, error) {
	by := *o.by
	if of := o.observed.Swap(nil); of != nil {
		by.Observed = *of
	}
	by.Passage = &mcp.Passage{Group: o.of}
	return o.Subscription.Add(mcp.WithPassage(group.OnBehalf(ctx, &by), by.Passage), want)
}
