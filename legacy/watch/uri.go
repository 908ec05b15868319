package watch

import (
	"encoding/json"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// changed takes a notification of the server: of a list, or of the resource uri.
// meta is its _meta object as it came, or nil; it is not kept. changed never
// blocks: sessions call it while reading.
//
// What was promised is published. What is being asked for at the moment is kept
// until the server has agreed, since its answer and its notification may come in
// any order. The rest goes to the nearest ancestor or is dropped (M2L-33). The
// result tells whether anybody was or will be told.
func (w *Watch) Changed(kind fanout.Kind, uri string, meta json.RawMessage) bool {
	if w == nil {
		return false
	}
	switch {
	case kind != fanout.ResourceUpdated:
		return w.listChanged(kind, meta)
	case w.hear(uri, "", meta),
		w.opts.Subresources != fanout.SubresourcesOff && w.ancestorHears(uri, meta):
		return true
	}
	w.opts.Metrics.Dropped(w.opts.Name, "unsubscribed update")
	return false
}

func (w *Watch) listChanged(kind fanout.Kind, meta json.RawMessage) bool {
	w.mu.Lock()
	e := w.lists[kind]
	ok := e != nil && e.acked
	w.mu.Unlock()
	if ok {
		w.opts.Changes.Publish(fanout.Event{Topic: e.topic, Meta: meta})
	}
	return ok
}

// ancestorHears tells the nearest subscribed ancestor of uri, and reports
// whether there is one.
func (w *Watch) ancestorHears(uri string, meta json.RawMessage) bool {
	as := ""
	if w.opts.Subresources == fanout.SubresourcesAsSent {
		as = uri
	}
	for at := range fanout.Ancestors(uri) {
		if w.hear(at, as, meta) {
			return true
		}
	}
	return false
}

// hear publishes a change under the topic of the URI at, and reports whether
// that was promised to somebody. as is the URI to tell of, empty for at itself.
func (w *Watch) hear(at, as string, meta json.RawMessage) bool {
	w.mu.Lock()
	e := w.uris[at]
	if e == nil || !e.acked {
		if e != nil && e.asking {
			e.keepRaced(as, meta)
		}
		w.mu.Unlock()
		return false
	}
	topic, fading := e.topic, e.fading // e.topic.URI: at may hold on to more
	w.mu.Unlock()
	if fading && !w.opts.Changes.Wanted(topic) {
		return false // it lingers: to an ancestor it is as if it were gone
	}
	if as == "" {
		as = topic.URI
	}
	w.opts.Changes.Publish(fanout.Event{Topic: topic, URI: as, Meta: meta})
	return true
}

// keepRaced keeps a change until the server has agreed to tell of it. The latest
// stands for all; where they are about different URIs, the topic's own does.
// watch.mu is held.
func (e *tracked) keepRaced(as string, meta json.RawMessage) {
	if as == "" || e.raced != nil && e.raced.URI != as {
		as = e.topic.URI
	}
	e.raced = &fanout.Event{Topic: e.topic, URI: as, Meta: meta}
}
