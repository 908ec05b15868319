package mcp

import (
	"context"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// ErrNotNow says that a server reports changes of none of the topics at the moment, and may later:
// it did not answer in time, or its stream for notifications is closed.
var ErrNotNow = errors.New("it can't report changes at the moment; subscribe again later")

// A Source reports changes upstream. Both listen streams and resources/subscribe use it.
type Source interface {
	// Watch subscribes upstream to the topics of want for the profile, and returns, in
	// the same order, the topics for which the server reports changes. The server refuses
	// or does not offer the others. Watch returns when the result for each topic is
	// known, or after a time-out. ctx ends the wait, but not the subscription. If none is
	// reported, because it can't be at the moment, err has [ErrNotNow] in its chain.
	//
	// From before the call of Watch until after release, [Changes.Wanted] must report
	// true for the topics: the Source follows it. release ends the caller's subscription.
	// Some time after the last release the Source unsubscribes upstream.
	Watch(ctx context.Context, p Profile, want []fanout.Topic) (honored []fanout.Topic, release func(), err error)
}

// WatchNow is s.Watch, but what can't be reported at the moment is left out, as in the
// acknowledgment of a listen stream (M2L-31).
func WatchNow(ctx context.Context, s Source, p Profile, want []fanout.Topic) (honored []fanout.Topic, release func(), err error) {
	honored, release, err = s.Watch(ctx, p, want)
	if errors.Is(err, ErrNotNow) {
		return nil, func() {}, nil
	}
	return honored, release, err
}

// Changes receives the reports of a Source. All methods are quick, never block, and are
// safe for concurrent use.
type Changes interface {
	// Publish reports that ev.Topic changed upstream.
	Publish(ev fanout.Event)
	// Wanted reports whether the topic has a subscriber.
	Wanted(t fanout.Topic) bool
	// End reports that there will be no more changes of the topic, with a reason for the
	// log. The topic's streams end gracefully, so that clients open new ones.
	End(t fanout.Topic, reason error)
}

// A Filter is the set of changes to which a client subscribes.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Notification Filter.
type Filter struct {
	Tools, Prompts, Resources bool
	URIs                      []string // distinct, in the client's order
	// Losses are those of sessions upstream. No client asks for them: the fronts of groups do.
	Losses bool
}

// Topics returns the topics of the filter in scope: those without URIs first, URIs in order.
func (f Filter) Topics(scope string) []fanout.Topic {
	var few [4]fanout.Topic
	lists := few[:0]
	for _, k := range []struct {
		on   bool
		kind fanout.Kind
	}{
		{f.Tools, fanout.ToolsListChanged},
		{f.Prompts, fanout.PromptsListChanged},
		{f.Resources, fanout.ResourcesListChanged},
		{f.Losses, fanout.StateLost},
	} {
		if k.on {
			lists = append(lists, fanout.Topic{Scope: scope, Kind: k.kind})
		}
	}
	// No larger than necessary, because it is kept as long as a stream is open.
	out := append(make([]fanout.Topic, 0, len(lists)+len(f.URIs)), lists...)
	for _, uri := range f.URIs {
		out = append(out, fanout.Topic{Scope: scope, Kind: fanout.ResourceUpdated, URI: uri})
	}
	return out
}

// Has reports whether the filter has topics of a kind.
func (f Filter) Has(k fanout.Kind) bool {
	return Lists{f.Tools, f.Prompts, f.Resources}.Has(k) || k == fanout.ResourceUpdated && len(f.URIs) > 0 || k == fanout.StateLost && f.Losses
}

// Lists are some of the three lists.
type Lists struct{ Tools, Prompts, Resources bool }

// Has reports whether a kind of change is that of one of the lists.
func (l Lists) Has(k fanout.Kind) bool {
	switch k {
	case fanout.ToolsListChanged:
		return l.Tools
	case fanout.PromptsListChanged:
		return l.Prompts
	case fanout.ResourcesListChanged:
		return l.Resources
	}
	return false
}

// changeMethods are the notifications of changes.
var changeMethods = [...]string{
	fanout.ToolsListChanged:     spec.NotifyToolsListChanged,
	fanout.PromptsListChanged:   spec.NotifyPromptsListChanged,
	fanout.ResourcesListChanged: spec.NotifyResourcesListChanged,
	fanout.ResourceUpdated:      spec.NotifyResourceUpdated,
}

// ChangeMethod returns the notification of a kind of change; empty for StateLost, which has none
// of its own.
func ChangeMethod(k fanout.Kind) string {
	if int(k) < len(changeMethods) {
		return changeMethods[k]
	}
	return ""
}

// ChangeKind returns the kind of change that a notification reports, and whether it reports
// one.
func ChangeKind(method string) (k fanout.Kind, ok bool) {
	for k, m := range changeMethods {
		if m == method && m != "" {
			return fanout.Kind(k), true
		}
	}
	return 0, false
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
		case fanout.StateLost:
			out.Losses = f.Losses
		}
	}
	for _, uri := range f.URIs {
		if uris[uri] {
			out.URIs = append(out.URIs, uri)
		}
	}
	return out
}

// A Subscriber lets a front subscribe to changes.
type Subscriber interface {
	// Subscribe registers mail as a subscriber without topics, in req's profile. The
	// caller must call Close when it no longer reads mail. If the subscription ends
	// before, mail ends.
	Subscribe(req *Request, mail *fanout.Mailbox, o SubscribeOptions) (Subscription, error)
}

// SubscribeOptions configure a subscription.
type SubscribeOptions struct {
	// Stream says that the subscriber is a listen stream. The number of open streams is
	// limited. A stream adds its topics at once and never removes any. When there will be
	// no more changes of one of its topics, the whole stream ends; other subscribers only
	// lose that topic.
	Stream bool
	// Peer says that the subscriber is another replica of the gateway, which has applied
	// the limits on clients' streams. There is another one on those of replicas.
	Peer bool
}

// A Subscription is the set of topics of one subscriber. Its methods are safe for
// concurrent use.
type Subscription interface {
	// Add subscribes to the topics of want, and returns the part whose changes will be
	// delivered. It returns when the result for each topic is known, which is at once for
	// a topic that the subscription already has. The mailbox may receive changes before
	// Add returns. After it has returned, the mailbox receives only changes of the
	// honored filter. If ctx ends, Add removes the topics without a result, and returns
	// ctx's cause.
	Add(ctx context.Context, want Filter) (honored Filter, err error)
	// Remove unsubscribes from URIs, and ignores those without a subscription. Their
	// pending changes are not delivered.
	Remove(uris ...string)
	// Close removes the subscriber. It may be called again.
	Close()
}
