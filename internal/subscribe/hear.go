package subscribe

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// Hear publishes a change of which the server tells, with ev.Topic as it was sent. It never
// blocks, and may be called by any goroutine.
//
// What was promised is published. What is being asked for at the moment is kept until the
// server has agreed, since its answer and its notification may come in any order. An update
// of another resource goes to the nearest ancestor that was promised, or is dropped
// (M2L-33). Hear reports whether somebody was or will be told.
//
// Where several streams tell of changes, carries says whether the one that ev came on is to
// tell of t; nil means that it is. If not, another tells of the change, too.
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

// hear publishes a change under the topic at, and reports whether that was promised.
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
		return false // to an ancestor it is as if it were gone
	}
	if carried {
		b.up.Changes.Publish(b.under(topic, ev))
	}
	return true
}

// under returns the event that tells of a change under a topic. It does not hold on to the
// URI that was sent if that is the topic's.
func (b *Book[S]) under(t fanout.Topic, ev fanout.Event) fanout.Event {
	out := fanout.Event{Topic: t, URI: t.URI, Meta: ev.Meta}
	if b.up.Subresources == fanout.SubresourcesAsSent && ev.Topic.URI != t.URI {
		out.URI = ev.Topic.URI
	}
	return out
}

// Unwanted reports whether nobody wants any more what the book has topics for: it is kept
// for the case that somebody soon does. It may be called by any goroutine.
func (b *Book[S]) Unwanted() bool {
	var topics []fanout.Topic
	b.Update(func() {
		for _, t := range b.topics {
			topics = append(topics, t.Topic)
		}
	})
	return !slices.ContainsFunc(topics, b.up.Changes.Wanted)
}
