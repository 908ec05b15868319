package subscribe

import (
	"cmp"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// Hear publishes a change that the server reports, with ev.Topic as it was sent. It never
// blocks, and may be called by any goroutine.
//
// A change of an accepted topic is published. While a topic is being requested, its change
// is kept until the server has accepted it, because response and notification may arrive in
// any order. An update of another resource goes to the nearest accepted ancestor, or is
// dropped (M2L-33). Hear reports whether a subscriber gets the change, now or later.
//
// If there are several streams, brings reports whether the stream of ev has to report it as a
// change of t; nil means that it has. If not, the change arrives on another stream, too. It is
// called only if the change is published by what it returns, and with the state of topics locked.
func (ts *topics[S]) Hear(ev fanout.Event, brings func(t *Topic[S], ev fanout.Event) bool) bool {
	at := ev.Topic
	if ts.hear(at, ev, brings) {
		return true
	}
	if at.Kind != fanout.ResourceUpdated {
		return false
	}
	if ts.up.Settings.Subresources != fanout.SubresourcesOff {
		for uri := range fanout.Ancestors(ev.Topic.URI) {
			if at.URI = uri; ts.hear(at, ev, brings) {
				return true
			}
		}
	}
	ts.up.Metrics.Dropped(ts.up.Name, "unsubscribed update")
	return false
}

// HearOf is Hear for a change that was told of a topic already, as another book has it: ev.URI is
// what was sent, and no ancestor gets it.
func (ts *topics[S]) HearOf(ev fanout.Event) bool {
	sent := ev
	sent.Topic.URI = cmp.Or(ev.URI, ev.Topic.URI)
	return ts.hear(ev.Topic, sent, nil)
}

// hear publishes a change under the topic at, and reports whether that was accepted.
func (ts *topics[S]) hear(at fanout.Topic, ev fanout.Event, brings func(*Topic[S], fanout.Event) bool) bool {
	ts.mu.Lock()
	t := ts.all[keyOf(at)]
	if t == nil || !t.promised {
		if t != nil && t.asked {
			t.keepEarly(ts.under(t.Topic, ev))
		}
		ts.mu.Unlock()
		return false
	}
	topic, fading := t.Topic, t.fading && t.Kind == fanout.ResourceUpdated
	brought := fading || brings == nil || brings(t, ev)
	ts.mu.Unlock()
	if fading {
		if !ts.up.Changes.Wanted(topic) {
			return false // its ancestors may have subscribers
		}
		ts.Update(func() { brought = brings == nil || brings(t, ev) })
	}
	if brought {
		ts.up.Changes.Publish(ts.under(topic, ev))
	}
	return true
}

// under returns the event for a change under a topic. It does not keep the URI that was
// sent if it is the topic's own, nor the number, which is of another replica.
func (ts *topics[S]) under(t fanout.Topic, ev fanout.Event) fanout.Event {
	out := fanout.Event{Topic: t, URI: t.URI, Meta: ev.Meta}
	if ts.up.Settings.Subresources == fanout.SubresourcesAsSent && ev.Topic.URI != t.URI {
		out.URI = ev.Topic.URI
	}
	return out
}

// Unwanted reports whether all topics of the book have lost their subscribers: they stay
// only in case subscribers come back soon. It may be called by any goroutine.
func (ts *topics[S]) Unwanted() bool {
	var topics []fanout.Topic
	ts.Update(func() {
		for _, t := range ts.all {
			topics = append(topics, t.Topic)
		}
	})
	return !slices.ContainsFunc(topics, ts.up.Changes.Wanted)
}
