package watch

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// maxTold bounds the changes whose numbers are kept. What is beyond may be told twice.
const maxTold = 1 << 16

// told has the number of the last change that was told of each resource or list, from the request of
// a merge until the streams that it replaces are closed; nil else.
type told map[change]uint64

// A change is what a server reports: of a topic, or of a sub-resource of it.
type change struct {
	of  *topic
	uri string // as it was sent
}

// A twice has changes told once that a server reports on two streams, as while streams are merged.
type twice struct {
	topics *book
	told   told // guarded by the lock of the book's topics
}

// brings reports whether what a stream reports of a topic is to be told, or is known from another
// stream: while streams are merged, two of them have a topic. The lock of the book's topics is held.
//
// Another replica numbers its changes. What has no higher number than one that was told is that
// change again, or an earlier one, and whoever was told reads the resource after both.
//
// Changes of other servers have no identity. But the server reports all changes on the last stream
// from before its acknowledgment on. So once that has brought one, what a former stream brings comes
// there as well, or was before that one. Until then both are told: the first change may come twice.
func (w *twice) brings(s *sharedStream, t *topic, ev fanout.Event) bool {
	on := t.State.on
	at := slices.Index(on, s)
	if at < 0 {
		return false
	}
	last, own := at == len(on)-1, ev.Topic == t.Topic // subscribers may be told of each sub-resource
	former := own && !last && t.State.heard
	t.State.heard = t.State.heard || own && last
	if ev.Number > 0 {
		return w.told.isNew(change{t, ev.Topic.URI}, ev.Number)
	}
	return !former
}

// isNew reports whether a change has a higher number than the last one.
func (of told) isNew(c change, number uint64) bool {
	last, known := of[c]
	if number <= last {
		return false
	}
	if of != nil && (known || len(of) < maxTold) {
		of[c] = number
	}
	return true
}

// reliedOn returns the topics of a stream for which another one was not heard any more, see brings.
func (w *twice) reliedOn(s *sharedStream) map[*topic]bool {
	out := make(map[*topic]bool)
	w.topics.Update(func() {
		for _, t := range s.topics {
			if on := t.State.on; len(w.told) == 0 && t.State.heard && len(on) > 1 && on[len(on)-1] == s {
				out[t] = true
			}
		}
	})
	return out
}

// expectTwice keeps the numbers of changes from now on: the server may report each on two streams.
func (w *twice) expectTwice() {
	if w.told == nil {
		w.topics.Update(func() { w.told = make(told) })
	}
}

// expectOnce forgets the numbers of changes, unless a stream of those that are open is replaced.
func (w *twice) expectOnce(open []*sharedStream) {
	if w.told == nil || slices.ContainsFunc(open, func(s *sharedStream) bool { return s.replaced }) {
		return
	}
	w.topics.Update(func() { w.told = nil })
}
