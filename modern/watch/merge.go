package watch

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

const (
	// maxSmall is how many streams may be open or on their way, those that a merge is
	// about aside: what comes then has them merged at once, and itself with them.
	maxSmall = 5
	// maxUnmerged is the same for a server that does not take all topics on one
	// stream.
	maxUnmerged = 64
	// maxOpen is how many may be open in all. What comes then waits for former
	// streams to be closed.
	maxOpen = 32
)

// mergeState is what the loop knows of the merging of streams. A merge opens a stream
// for what several carry, and once that is acknowledged it lets the former streams go
// on for a while: what the server had sent on them before it acknowledged the new one
// may still be on its way. The new one is not merged meanwhile, so that a change comes
// on two streams at most.
type mergeState struct {
	mergeAt    time.Duration // when to merge all; 0: there is no reason to
	mergeFirst time.Duration // since when there is
	mergeFloor time.Duration // not before
	merging    bool          // a merge is on its way
	mergeTries int           // merges in a row that left former streams over
}

// settled returns the streams of which no other carries topics, nor is about to: they may
// be merged.
func settled(streams []*sharedStream, now time.Duration) []*sharedStream {
	var out []*sharedStream
	for _, s := range streams {
		if !s.replaced && s.youngUntil <= now {
			out = append(out, s)
		}
	}
	return out
}

// room reports whether one more stream may be opened.
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

// mergeBy has streams merged at a time, or earlier.
func (m *mergeState) mergeBy(now, at time.Duration) {
	if m.mergeAt == 0 {
		m.mergeFirst = now
	}
	m.mergeAt = subscribe.Earliest(m.mergeAt, at)
}

// mergeAgain has another merge tried seldom.
func (m *mergeState) mergeAgain(now time.Duration) {
	m.mergeTries++
	m.mergeFloor = now + omittedPause(m.mergeTries)
	m.mergeBy(now, m.mergeFloor)
}

// mergeFailed leaves the streams as they are.
func (m *mergeState) mergeFailed(now time.Duration, l *listen) {
	m.merging = false
	for _, s := range l.replaces {
		s.replaced = false
	}
	m.mergeAgain(now)
}

// mergeLater has streams merged once no new ones have come for a while, but not put off
// for ever.
func (w *watch) mergeLater() {
	if len(w.streams) < 2 {
		return
	}
	if w.mergeAt == 0 {
		w.mergeFirst = w.book.Now()
	}
	w.mergeAt = min(w.book.Now()+backoff.Jitter(settle), w.mergeFirst+5*settle)
}

// excess has topics that nobody wants leave the streams. Where there can be one stream
// only, that is not worth a gap for all of its topics: see pumpSingle.
func (w *watch) excess() {
	wait := 2 * settle
	if w.opts.single {
		wait = 10 * settle
	}
	w.mergeBy(w.book.Now(), w.book.Now()+backoff.Jitter(wait))
}

// nextMerge returns when there is something to do about merges.
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

// mergeInHaste merges the streams that can be, to make room for topics that wait.
func (w *watch) mergeInHaste(ctx context.Context) {
	streams := settled(w.streams, w.book.Now())
	if w.merging || w.book.Now() < w.mergeFloor || len(streams) < 2 || len(w.streams)+w.out >= maxOpen {
		return
	}
	w.merge(ctx, streams, w.takeFresh())
}

// merge asks for what streams carry, and for fresh topics with it.
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

// merged takes the acknowledgment of a merge. A former stream that carries what the
// new one does not goes on; another merge is tried seldom.
func (w *watch) merged(l *listen, honored bool, omitted []*topic) {
	if !honored {
		w.mergeFailed(w.book.Now(), l)
		return
	}
	w.merging = false
	until := w.book.Now() + overlap
	w.streams[len(w.streams)-1].youngUntil = until // the one that was just taken
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

// endOverlaps closes the streams that a merge has made superfluous.
func (w *watch) endOverlaps() {
	for _, s := range slices.Clone(w.streams) {
		if s.until != 0 && s.until <= w.book.Now() {
			w.endOverlap(s)
		}
	}
}

// endOverlap takes off a stream what others carry and what nobody wants. If nothing is
// left it is closed.
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
