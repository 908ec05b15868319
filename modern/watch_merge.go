package modern

import (
	"context"
	"slices"
	"time"
)

const (
	// maxStreams is how many streams may be open or on their way, those that are
	// being replaced aside: what comes then waits for a merge, which is made at once.
	maxStreams = 5
	// maxUnmerged is the same for a server that does not take all topics on one
	// stream.
	maxUnmerged = 64
)

// mergeState is what the loop knows of the merging of streams. A merge opens a stream
// for all that is promised, and once that is acknowledged it lets the former streams
// go on for a while: what the server had sent on them before it acknowledged the new
// one may still be on its way. There is no other merge meanwhile, so that a change
// comes on two streams at most.
type mergeState struct {
	mergeAt      time.Duration // when to merge; 0: there is no reason to
	mergeFirst   time.Duration // since when there is
	mergeFloor   time.Duration // not before
	merging      bool          // the bid is out
	overlapUntil time.Duration // the former streams go on until then; 0: none do
	mergeTries   int           // merges in a row that left former streams over
}

// room reports whether one more small stream may be opened.
func (w *watch) room() bool {
	n := w.out
	if w.merging {
		n--
	}
	for _, s := range w.streams {
		if !s.replaced {
			n++
		}
	}
	if w.mergeTries > 0 {
		return n < maxUnmerged
	}
	return n < maxStreams
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
	w.mergeAt = min(w.now()+jitter(w.opts.settle), w.mergeFirst+5*w.opts.settle)
}

// excess has topics that nobody wants leave the streams. One stream alone is not
// worth a gap for all of its topics: see pumpSingle.
func (w *watch) excess() {
	if w.opts.single {
		w.mergeBy(w.now() + jitter(10*w.opts.settle))
	} else {
		w.mergeBy(w.now() + jitter(2*w.opts.settle))
	}
}

func (w *watch) nextMerge() time.Duration {
	switch {
	case w.overlapUntil != 0:
		return w.overlapUntil
	case w.mergeAt == 0, w.merging, w.opts.single && w.out > 0:
		return 0
	}
	return max(w.mergeAt, w.mergeFloor)
}

// pumpMerge merges streams if it is time.
func (w *watch) pumpMerge(ctx context.Context) {
	if w.mergeAt == 0 || w.merging || w.overlapUntil != 0 || w.now() < max(w.mergeAt, w.mergeFloor) {
		return
	}
	w.mergeAt = 0
	b := &bid{merge: true, topics: w.takeFresh(), replaces: slices.Clone(w.streams)}
	if len(b.topics) == 0 && len(w.streams) < 2 && !w.carriesExcess() {
		return
	}
	for _, e := range w.topics {
		if e.promised && len(e.on) > 0 {
			b.topics = append(b.topics, e)
		}
	}
	if len(b.topics) == 0 {
		return
	}
	for _, s := range w.streams {
		s.replaced = true
	}
	w.merging = true
	w.send(ctx, b)
}

func (w *watch) carriesExcess() bool {
	return slices.ContainsFunc(w.streams, func(s *sharedStream) bool {
		return slices.ContainsFunc(s.topics, func(e *tracked) bool { return !e.needed() })
	})
}

// merged takes the acknowledgment of a merge. A former stream that carries what the
// new one does not goes on; another merge is tried seldom.
func (w *watch) merged(b *bid, won, lost []*tracked) {
	if len(won) == 0 {
		w.mergeFailed(b)
		return
	}
	w.merging = false
	w.overlapUntil = w.now() + w.opts.overlap
	if !slices.ContainsFunc(lost, func(e *tracked) bool { return len(e.on) > 0 }) {
		w.mergeTries, w.mergeFloor = 0, 0
		return
	}
	w.mergeAgain()
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
	if w.overlapUntil == 0 || now < w.overlapUntil {
		return
	}
	w.overlapUntil = 0
	for _, s := range slices.Clone(w.streams) {
		if s.replaced {
			w.shed(s)
		}
	}
}

// shed takes off a stream what others carry and what nobody wants. If nothing is left
// it is closed.
func (w *watch) shed(s *sharedStream) {
	s.replaced = false
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
