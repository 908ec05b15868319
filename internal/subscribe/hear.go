package subscribe

import (
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
// If there are several streams, carries reports whether the stream of ev has to report t;
// nil means that it has. If not, the change arrives on another stream, too.
func (b *Book[S]) Hear(ev fanout.Event, carries func(t *Topic[S]) bool) bool {
	at := ev.Topic
	if b.hear(at, ev, carries) {
		return true
	}
	if at.Kind != fanout.ResourceUpdated {
		return false
	}
	if b.up.Subresources != fanout.SubresourcesOff {
		for uri := range fanout.Ancestors(ev.Topic.URI) {
			if at.URI = uri; b.hear(at, ev, carries) {
				return true
			}
		}
	}
	b.up.Metrics.Dropped(b.up.Name, "unsubscribed update")
	return false
}

// hear publishes a change under the topic at, and reports whether that was accepted.
func (b *Book[S]) hear(at fanout.Topic, ev fanout.Event, carries func(*Topic[S]) bool) bool {
	b.mu.Lock()
	t := b.topics[keyOf(at)]
	if t == nil || !t.promised {
		if t != nil && t.asked {
			t.keepEarly(b.under(t.Topic, ev))
		}
		b.mu.Unlock()
		return false
	}
	topic, fading, carried := t.Topic, t.fading, carries == nil || carries(t)
	b.mu.Unlock()
	if fading && topic.Kind == fanout.ResourceUpdated && !b.up.Changes.Wanted(topic) {
		return false // its ancestors may have subscribers
	}
	if carried {
		b.up.Changes.Publish(b.under(topic, ev))
	}
	return true
}

// under returns the event for a change under a topic. It does not keep the URI that was
// sent if it is the topic's own.
func (b *Book[S]) under(t fanout.Topic, ev fanout.Event) fanout.Event {
	out := fanout.Event{Topic: t, URI: t.URI, Meta: ev.Meta}
	if b.up.Subresources == fanout.SubresourcesAsSent && ev.Topic.URI != t.URI {
		out.URI = ev.Topic.URI
	}
	return out
}

// Unwanted reports whether all topics of the book have lost their subscribers: they stay
// only in case subscribers come back soon. It may be called by any goroutine.
func (b *Book[S]) Unwanted() bool {
	var topics []fanout.Topic
	b.Update(func() {
		for _, t := range b.topics {
			topics = append(topics, t.Topic)
		}
	})
	return !slices.ContainsFunc(topics, b.up.Changes.Wanted)
}
