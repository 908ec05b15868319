package mcp

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// A Source tells of changes upstream. It is the second waist: listen streams and
// resources/subscribe both stand on it.
type Source interface {
	// Watch makes the upstream report changes of want for the profile, and
	// returns the topics for which it does: the others were refused or are not
	// offered. Their order is kept. It returns once each is settled, or after the bound that the
	// rules set; ctx ends the wait, not the interest.
	//
	// From before Watch is called until after release, the caller counts as
	// interested by [Changes.Wanted]; Watch is level-triggered by it. release
	// says that the caller lost interest; the upstream is told some time after
	// the last caller did.
	Watch(ctx context.Context, p Profile, want []fanout.Topic) (honored []fanout.Topic, release func(), err error)
}

// Changes is where a Source reports to. All methods are quick, never block, and
// are safe for concurrent use.
type Changes interface {
	// Publish says that ev.Topic changed upstream.
	Publish(ev fanout.Event)
	// Wanted reports whether anybody is interested in the topic.
	Wanted(t fanout.Topic) bool
	// End says that no more changes of the topic will come, for a reason fit for
	// a log: its streams end gracefully, so that clients listen anew.
	End(t fanout.Topic, reason error)
}

// A Filter is the set of changes a client wants to hear of.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Notification Filter.
type Filter struct {
	Tools, Prompts, Resources bool
	URIs                      []string // distinct, in the client's order
}

// Topics returns the topics of the filter in scope, list kinds first, URIs in
// order.
func (f Filter) Topics(scope string) []fanout.Topic {
	var few [3]fanout.Topic
	lists := few[:0]
	for _, k := range []struct {
		on   bool
		kind fanout.Kind
	}{
		{f.Tools, fanout.ToolsListChanged},
		{f.Prompts, fanout.PromptsListChanged},
		{f.Resources, fanout.ResourcesListChanged},
	} {
		if k.on {
			lists = append(lists, fanout.Topic{Scope: scope, Kind: k.kind})
		}
	}
	// No larger than need be: it is kept as long as a stream is open.
	out := append(make([]fanout.Topic, 0, len(lists)+len(f.URIs)), lists...)
	for _, uri := range f.URIs {
		out = append(out, fanout.Topic{Scope: scope, Kind: fanout.ResourceUpdated, URI: uri})
	}
	return out
}

// Narrow returns the part of f that topics hold, in f's order.
func (f Filter) Narrow(topics []fanout.Topic) Filter {
	var out Filter
	uris := make(map[string]bool, len(topics))
	for _, t := range topics {
		switch t.Kind {
		case fanout.ToolsListChanged:
			out.Tools = f.Tools
		case fanout.PromptsListChanged:
			out.Prompts = f.Prompts
		case fanout.ResourcesListChanged:
			out.Resources = f.Resources
		case fanout.ResourceUpdated:
			uris[t.URI] = true
		}
	}
	for _, uri := range f.URIs {
		if uris[uri] {
			out.URIs = append(out.URIs, uri)
		}
	}
	return out
}

// A Subscriber lets a front hear of changes.
type Subscriber interface {
	// Subscribe registers mail as a subscriber without topics, in req's profile. Whoever
	// subscribed calls Close once mail is not read any more. That the subscription is
	// over is told by mail, which ends.
	Subscribe(req *Request, mail *fanout.Mailbox, o SubscribeOptions) (Subscription, error)
}

// SubscribeOptions say what kind of subscriber it is.
type SubscribeOptions struct {
	// Stream says that it is a listen stream, of which a bounded number may be open. Its
	// topics are added at once and never removed. It ends as a whole when no more
	// changes of one of them will come; other subscribers lose that topic alone.
	Stream bool
}

// A Subscription is what one subscriber follows. Its methods are safe for concurrent use.
type Subscription interface {
	// Add asks for the topics of want and returns once each is settled: the result is
	// the part that will be delivered. Changes may wait in the mailbox before Add
	// returns; none outside the honored filter is put there after it has. Adding what
	// is there already is settled at once. ctx ends the wait: what was not settled is
	// taken back, and the error is ctx's cause.
	Add(ctx context.Context, want Filter) (honored Filter, err error)
	// Remove gives URIs up; those that are not held do no harm. Nothing pending of them
	// is delivered after.
	Remove(uris ...string)
	// Close removes the subscriber at once. It may be called again.
	Close()
}
