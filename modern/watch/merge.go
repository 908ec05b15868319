package watch

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

const (
	// maxSmall is how many streams may be open or opening, without those of a merge. A
	// further topic causes an immediate merge that includes it.
	maxSmall = 5
	// maxUnmerged is the same for a server that does not accept all topics on one stream.
	maxUnmerged = 64
	// maxOpen limits the open streams. A further topic waits until replaced streams are
	// closed.
	maxOpen = 32
)

// mergeState is the state of merges; only the loop uses it. A merge opens one stream for
// the topics of several. When that is acknowledged, the replaced streams stay open for a
// while, because changes that the server sent before may still arrive on them. In that time
// the new stream is not merged, so that a change arrives on at most two streams.
type mergeState struct {
	mergeAt    time.Duration // when to merge all; 0: never
	mergeFirst time.Duration // since when a merge is due
	mergeFloor time.Duration // no merge before
	merging    bool          // a merge is in progress
	mergeTries int           // merges in a row that could not replace all streams
}

// settled returns the streams that can be merged: they have no topics that another stream
// has, or is about to have.
func settled(streams []*sharedStream, now time.Duration) []*sharedStream {
	var out []*sharedStream
	for _, s := range streams {
		if !s.replaced && s.youngUntil <= now {
			out = append(out, s)
		}
	}
	return out
}

// room reports whether another stream may be opened.
func (w *watch) room() bool {
	n := len(settled(w.streams, w.book.Now())) + w.out
	if w.merging {
		n--
	}
	if w.mergeTries > 0 {
		return n < maxUnmerged
	}
	return n < maxSmall && len(w.streams)+w.out < maxOpen
}

// mergeBy schedules a merge for a time, unless it is scheduled earlier.
func (m *mergeState) mergeBy(now, at time.Duration) {
	if m.mergeAt == 0 {
		m.mergeFirst = now
	}
	m.mergeAt = subscribe.Earliest(m.mergeAt, at)
}

// mergeAgain schedules another merge, later each time.
func (m *mergeState) mergeAgain(now time.Duration) {
	m.mergeTries++
	m.mergeFloor = now + omittedPause(m.mergeTries)
	m.mergeBy(now, m.mergeFloor)
}

// mergeFailed keeps the streams as they are.
func (m *mergeState) mergeFailed(now time.Duration, l *listen) {
	m.merging = false
	for _, s := range l.replaces {
		s.replaced = false
	}
	m.mergeAgain(now)
}

// mergeLater schedules a merge for when no new streams have been opened for a while, but
// with a limit.
func (w *watch) mergeLater() {
	if len(w.streams) < 2 {
		return
	}
	if w.mergeAt == 0 {
		w.mergeFirst = w.book.Now()
	}
	w.mergeAt = min(w.book.Now()+backoff.Jitter(settle), w.mergeFirst+5*settle)
}

// excess removes unneeded topics from the streams by a merge. If the server allows only one
// stream, that is not worth a gap for all topics: see pumpSingle.
func (w *watch) excess() {
	wait := 2 * settle
	if w.opts.single {
		wait = 10 * settle
	}
	w.mergeBy(w.book.Now(), w.book.Now()+backoff.Jitter(wait))
}

// nextMerge returns when pumpMerge or endOverlaps has something to do.
func (w *watch) nextMerge() time.Duration {
	var closing, young time.Duration
	for _, s := range w.streams {
		closing = subscribe.Earliest(closing, s.until)
		young = max(young, s.youngUntil)
	}
	if w.mergeAt == 0 || w.merging || w.opts.single && w.out > 0 {
		return closing
	}
	return subscribe.Earliest(closing, max(w.mergeAt, w.mergeFloor, young))
}

// pumpMerge merges all streams if it is time.
func (w *watch) pumpMerge(ctx context.Context) {
	if w.mergeAt == 0 || w.merging || w.book.Now() < max(w.mergeAt, w.mergeFloor) {
		return
	}
	streams := settled(w.streams, w.book.Now())
	if len(streams) < len(w.streams) {
		return
	}
	w.mergeAt = 0
	if len(streams) > 1 || slices.ContainsFunc(streams, carriesExcess) {
		w.merge(ctx, streams, nil)
	}
}

// mergeInHaste merges the streams that can be merged, to make room for topics that wait.
func (w *watch) mergeInHaste(ctx context.Context) {
	streams := settled(w.streams, w.book.Now())
	if w.merging || w.book.Now() < w.mergeFloor || len(streams) < 2 || len(w.streams)+w.out >= maxOpen {
		return
	}
	w.merge(ctx, streams, w.takeFresh())
}

// merge requests one stream for the topics of several, and for fresh topics.
func (w *watch) merge(ctx context.Context, streams []*sharedStream, fresh []*topic) {
	l := &listen{merge: true, topics: fresh, replaces: streams}
	for _, s := range streams {
		for _, t := range s.topics {
			if t.Promised() {
				l.topics = append(l.topics, t)
			}
		}
	}
	if len(l.topics) == 0 {
		return
	}
	for _, s := range streams {
		s.replaced = true
	}
	w.merging = true
	w.send(ctx, l)
}

func carriesExcess(s *sharedStream) bool {
	return slices.ContainsFunc(s.topics, func(t *topic) bool { return !t.Needed() })
}

// merged handles the acknowledgment of a merge. A replaced stream with topics that the new
// one lacks stays open; the next merge comes later.
func (w *watch) merged(l *listen, honored bool, omitted []*topic) {
	if !honored {
		w.mergeFailed(w.book.Now(), l)
		return
	}
	w.merging = false
	until := w.book.Now() + overlap
	w.streams[len(w.streams)-1].youngUntil = until // the new stream
	for _, s := range l.replaces {
		s.until = until
	}
	if slices.ContainsFunc(omitted, carried) {
		w.mergeAgain(w.book.Now())
		return
	}
	w.mergeTries, w.mergeFloor = 0, 0
	w.mergeLater()
}

// endOverlaps closes streams that a merge has replaced.
func (w *watch) endOverlaps() {
	for _, s := range slices.Clone(w.streams) {
		if s.until != 0 && s.until <= w.book.Now() {
			w.endOverlap(s)
		}
	}
}

// endOverlap removes from a stream the topics that other streams have, or that are not
// needed. If none are left, it closes the stream.
func (w *watch) endOverlap(s *sharedStream) {
	s.replaced, s.until = false, 0
	var keep, gone []*topic
	for _, t := range s.topics {
		if t.Needed() && len(t.State.on) == 1 {
			keep = append(keep, t)
		} else {
			gone = append(gone, t)
		}
	}
	s.unload(w.book, gone)
	s.topics = keep
	for _, t := range gone {
		w.Look(t)
	}
	if len(keep) == 0 {
		w.detach(s)
		w.book.Go(s.stream.Close) // its reader ends then
	}
}
