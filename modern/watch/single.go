package watch

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

const (
	// gapsAfter is the time after the last listen request until missed changes are
	// reported.
	gapsAfter = time.Second
	// gapsWithin bounds how long further listen requests can delay that.
	gapsWithin = 10 * time.Second
)

// gapState says when changes that may have been missed are reported, for servers with one
// stream, where each request causes a gap.
type gapState struct {
	gapsAt time.Duration // 0: not before the next listen request
	gapsBy time.Duration // the limit; 0: there is nothing to report
}

func (g *gapState) nextGap() time.Duration { return subscribe.Earliest(g.gapsAt, g.gapsBy) }

// A single is a watch of a server that supports one listen stream at a time.
type single struct{ *watch }

// pump requests a new stream with all topics if the current one lacks some, or if
// half of its topics are not needed any more. Topics that come while a request is in flight
// are in the next one (L2M-22).
func (w single) pump(ctx context.Context) {
	if w.out > 0 || !w.allowedSingle() {
		return
	}
	l := &listen{topics: pick(w.accepted)}
	w.accepted = nil
	doubtful := w.takeDoubtful(l)
	if len(doubtful)+len(l.topics) == 0 && !w.trims() {
		return
	}
	for _, s := range w.streams {
		l.former = s
		w.detach(s)
		l.topics = append(l.topics, w.interrupt(s)...)
	}
	l.accepted = len(l.topics)
	l.topics = append(l.topics, doubtful...)
	if len(l.topics) > 0 {
		w.gapsAt = 0
		w.send(ctx, l)
	}
}

// takeDoubtful returns topics that the server may not have accepted yet: parts of a refused
// request first.
func (w single) takeDoubtful(l *listen) (topics []*topic) {
	if w.partsDue(w.book.Now()) {
		topics = w.takePart()
	}
	if l.part = len(topics) > 0 || len(w.parts) > 0; l.part || !w.freshDue(w.book.Now()) {
		return topics
	}
	if topics = w.takeFresh(); len(topics) > 0 {
		topics = append(topics, w.wakeResting()...)
	}
	return topics
}

// allowedSingle is allowed for servers with one stream: requests that only leave out
// unneeded topics wait for the others.
func (w single) allowedSingle() bool {
	now := w.book.Now()
	if !w.freshDue(now) && !w.partsDue(now) && len(w.accepted) == 0 || w.allowed(now) {
		return true
	}
	if w.mergeAt != 0 {
		w.mergeAt = max(w.mergeAt, w.paidAt)
	}
	return false
}

// wakeResting returns the topics that rest but were not refused: in a request that is sent
// anyway they need no gap of their own.
func (w single) wakeResting() []*topic {
	var out []*topic
	for _, t := range allResting(w.book) {
		if !t.State.omitted {
			t.State.place = queued
			w.book.At(t, 0)
			out = append(out, t)
		}
	}
	return out
}

// interrupt returns the topics of a stream that is about to be closed. Their changes may be
// missed.
func (w single) interrupt(s *sharedStream) []*topic {
	var out []*topic
	for _, t := range s.topics {
		if t.Promised() {
			t.Missed = true
			out = append(out, t)
		} else {
			w.Look(t)
		}
	}
	return out
}

// trims reports whether it is time to leave out the topics that are not needed.
func (w single) trims() bool {
	if w.mergeAt == 0 || w.book.Now() < w.mergeAt {
		return false
	}
	w.mergeAt = 0
	all, needed := 0, 0
	for t := range w.book.All() {
		if carried(t) {
			all++
			if t.Needed() {
				needed++
			}
		}
	}
	return needed > 0 && 2*needed <= all
}

// tellGapsLater records that a stream has topics again whose changes may have been missed.
func (w single) tellGapsLater(topics []*topic) {
	if slices.ContainsFunc(topics, func(t *topic) bool { return t.Missed }) {
		w.gapsAt = w.book.Now() + gapsAfter
		w.gapsBy = subscribe.Earliest(w.gapsBy, w.book.Now()+gapsWithin)
	}
}

// tellGaps reports all changes that may have been missed, if it is time. Topics that are
// being requested follow later.
func (w single) tellGaps() {
	if at := w.nextGap(); at == 0 || w.book.Now() < at {
		return
	}
	w.gapsAt, w.gapsBy = 0, 0
	for t := range w.book.All() {
		if t.Missed && t.Promised() && (carried(t) || t.State.place == opening) {
			w.book.Tell(t)
			t.Missed = !carried(t)
		}
	}
}
