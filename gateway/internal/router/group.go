package router

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// openGroup opens the back of a group.
func (s *server) openGroup(o *group.Options, c mcp.Changes) (err error) {
	if s.group, err = group.Open(s.groupOptions(o), c); err == nil {
		s.back = s.group
	}
	return err
}

// memberEra returns what says of which era the member is that a request to a group is for; nil
// for a single server.
func (s *server) memberEra() func(*mcp.Request) spec.Era {
	if s.group == nil {
		return nil
	}
	return s.group.EraOf
}

// checkMembers reports what is wrong with other members of a group that is kept; nil for the
// same ones.
func (s *server) checkMembers(o *group.Options) error {
	if o == nil {
		return nil
	}
	if s.group == nil {
		return fmt.Errorf("server %s: it is to be kept as a group, and is none", s.name)
	}
	_, err := group.New(s.groupOptions(o), s.g.hub)
	return err
}

// regroup has the groups of a table that were there before find their members in it.
func (g *Gateway) regroup(t *table) {
	for _, so := range t.opts.Servers {
		s := t.servers[so.Name]
		switch {
		case s.group == nil || !so.Kept:
		case so.Group == nil:
			s.group.Look()
		default:
			if err := s.group.Update(s.groupOptions(so.Group)); err != nil { // they were checked
				g.opts.Logger.Error("a group keeps its members", "upstream", so.Name, "err", err)
			}
		}
	}
}

func (s *server) groupOptions(o *group.Options) group.Options {
	out := *o
	out.Name, out.Find, out.Sealer, out.Logger, out.Metrics = s.name, s.g.members(s.name), s.g.sealer, s.g.opts.Logger, s.g.opts.Metrics
	return out
}

// forGroup returns a subscription to a group whose members know on whose behalf it is. What one of
// them hides is not put into mail.
func (s *server) forGroup(req *mcp.Request, mail *fanout.Mailbox, sub mcp.Subscription) mcp.Subscription {
	if s.group == nil {
		return sub
	}
	by := *req // without its texts, which need not stay
	by.Params, by.Extra, by.ParamHeaders, by.Observed, by.Passage = nil, nil, nil, mcp.Observed{}, nil
	mail.Hide(func(ev fanout.Event) bool { return s.group.Hides(&by, ev) })
	o := &onBehalf{Subscription: sub, of: s.name, by: &by}
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
