package watch

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// changed publishes a change that came on a stream, if it was promised and the
// stream is one of those that carry it. An update that nobody subscribed to goes to
// the nearest subscribed ancestor (M2L-33); where that is on another stream the
// server tells of it there, too. The result tells whether somebody needed it.
func (w *watch) changed(s *sharedStream, ev fanout.Event) bool {
	at := ev.Topic
	if w.hear(s, at, ev) {
		return true
	}
	if at.Kind == fanout.ResourceUpdated && w.opts.Subresources != fanout.SubresourcesOff {
		for uri := range fanout.Ancestors(ev.Topic.URI) {
			if at.URI = uri; w.hear(s, at, ev) {
				return true
			}
		}
	}
	w.opts.Metrics.Dropped(w.opts.Name, "unsubscribed update")
	return false
}

// hear reports whether the topic at was promised to somebody, and publishes the
// change under it if the stream carries it.
func (w *watch) hear(s *sharedStream, at fanout.Topic, ev fanout.Event) bool {
	w.mu.Lock()
	e := w.topics[at]
	ok := e != nil && e.promised
	carried, fading := ok && slices.Contains(e.on, s), ok && e.fading
	w.mu.Unlock()
	if !ok || fading && !w.opts.Changes.Wanted(e.topic) {
		return false // what lingers is to an ancestor as if it were gone
	}
	if !carried {
		return true
	}
	out := fanout.Event{Topic: e.topic, URI: e.topic.URI, Meta: ev.Meta} // at may hold on to more
	if w.opts.Subresources == fanout.SubresourcesAsSent {
		out.URI = ev.Topic.URI
	}
	w.opts.Changes.Publish(out)
	return true
}
