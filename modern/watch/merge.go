package watch

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
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
	merging    bool          // a merge is out
	mergeTries int           // merges in a row that left former streams over
}

// settled reports whether no other stream carries topics of s, nor is about to.
func (w *watch) settled(s *sharedStream) bool { return !s.replaced && s.youngUntil <= w.now() }

// small returns the streams that may be merged.
func (w *watch) small() []*sharedStream {
	var out []*sharedStream
	for _, s := range w.streams {
		if w.settled(s) {
			out = append(out, s)
		}
	}
	return out
}

// room reports whether one more stream may be opened.
func (w *watch) room() bool {
	n := len(w.small()) + w.out
	if w.merging {
		n--
	}
	if w.mergeTries > 0 {
		return n < maxUnmerged
	}
	return n < maxSmall && len(w.streams)+w.out < maxOpen
}

// mergeBy has streams merged at a time, or earlier.
func (w *watch) mergeBy(at time.Duration) {
	if w.mergeAt == 0 {
		w.mergeFirst = w.now()
	}
	w.mergeAt = earliest(w.mergeAt, at)
}

// unsettle has streams merged once no new ones have come for a while, but not put off
// for ever.
func (w *watch) unsettle() {
	if len(w.streams) < 2 {
		return
	}
	if w.mergeAt == 0 {
		w.mergeFirst = w.now()
	}
	w.mergeAt = min(w.now()+backoff.Jitter(w.opts.Settle), w.mergeFirst+5*w.opts.Settle)
}

// excess has topics that nobody wants leave the streams. Where there can be one stream
// only, that is not worth a gap for all of its topics: see pumpSingle.
func (w *watch) excess() {
	if w.opts.Single {
		w.mergeBy(w.now() + backoff.Jitter(10*w.opts.Settle))
	} else {
		w.mergeBy(w.now() + backoff.Jitter(2*w.opts.Settle))
	}
}

// nextMerge returns when there is something to do about merges.
func (w *watch) nextMerge() time.Duration {
	var closing, young time.Duration
	for _, s := range w.streams {
		closing = earliest(closing, s.until)
		young = max(young, s.youngUntil)
	}
	if w.mergeAt == 0 || w.merging || w.opts.Single && w.out > 0 {
		return closing
	}
	return earliest(closing, max(w.mergeAt, w.mergeFloor, young))
}

// pumpMerge merges all streams if it is time.
func (w *watch) pumpMerge(ctx context.Context) {
	if w.mergeAt == 0 || w.merging || w.now() < max(w.mergeAt, w.mergeFloor) {
		return
	}
	small := w.small()
	if len(small) < len(w.streams) {
		return
	}
	w.mergeAt = 0
	if len(small) > 1 || slices.ContainsFunc(small, carriesExcess) {
		w.merge(ctx, small, nil)
	}
}

// mergeInHaste merges the streams that can be, to make room for topics that wait.
func (w *watch) mergeInHaste(ctx context.Context) {
	small := w.small()
	if w.merging || w.now() < w.mergeFloor || len(small) < 2 || len(w.streams)+w.out >= maxOpen {
		return
	}
	w.merge(ctx, small, w.takeFresh())
}

// merge makes a bid for what streams carry, and for fresh topics with it.
func (w *watch) merge(ctx context.Context, streams []*sharedStream, fresh []*tracked) {
	b := &bid{merge: true, topics: fresh, replaces: streams}
	for _, s := range streams {
		for _, e := range s.topics {
			if e.promised {
				b.topics = append(b.topics, e)
			}
		}
	}
	if len(b.topics) == 0 {
		return
	}
	for _, s := range streams {
		s.replaced = true
	}
	w.merging = true
	w.send(ctx, b)
}

func carriesExcess(s *sharedStream) bool {
	return slices.ContainsFunc(s.topics, func(e *tracked) bool { return !e.needed() })
}

// merged takes the acknowledgment of a merge. A former stream that carries what the
// new one does not goes on; another merge is tried seldom.
func (w *watch) merged(b *bid, won, lost []*tracked) {
	if len(won) == 0 {
		w.mergeFailed(b)
		return
	}
	w.merging = false
	until := w.now() + w.opts.Overlap
	w.streams[len(w.streams)-1].youngUntil = until // the one that was just taken
	for _, s := range b.replaces {
		s.until = until
	}
	if slices.ContainsFunc(lost, func(e *tracked) bool { return len(e.on) > 0 }) {
		w.mergeAgain()
		return
	}
	w.mergeTries, w.mergeFloor = 0, 0
	w.unsettle()
}

// mergeFailed leaves the streams as they are.
func (w *watch) mergeFailed(b *bid) {
	w.merging = false
	for _, s := range b.replaces {
		s.replaced = false
	}
	w.mergeAgain()
}

func (w *watch) mergeAgain() {
	w.mergeTries++
	w.mergeFloor = w.now() + seldom(w.mergeTries)
	w.mergeBy(w.mergeFloor)
}

// overlapped closes the streams that a merge has made superfluous.
func (w *watch) overlapped(now time.Duration) {
	for _, s := range slices.Clone(w.streams) {
		if s.until != 0 && s.until <= now {
			w.shed(s)
		}
	}
}

// shed takes off a stream what others carry and what nobody wants. If nothing is left
// it is closed.
func (w *watch) shed(s *sharedStream) {
	s.replaced, s.until = false, 0
	var keep, gone []*tracked
	for _, e := range s.topics {
		if e.needed() && len(e.on) == 1 {
			keep = append(keep, e)
		} else {
			gone = append(gone, e)
		}
	}
	w.unload(s, gone)
	s.topics = keep
	for _, e := range gone {
		w.look(e)
	}
	if len(keep) == 0 {
		w.detach(s)
		w.dismiss(s)
	}
}
