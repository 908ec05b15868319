package watch

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

const (
	// handover is how long a server gets to end a stream before the next is asked
	// for. Go servers forget the lists of a session when its stream has ended, even if
	// the next has been acknowledged by then.
	handover = 50 * time.Millisecond
	// gapsAfter is how long after the last listen the missed changes are told.
	gapsAfter = time.Second
	// gapsWithin is how long that can be put off by yet another listen.
	gapsWithin = 10 * time.Second
)

// gapState says when changes are told that may have been missed, where there is a gap with
// every listen.
type gapState struct {
	gapsAt time.Duration // 0: not before the next listen
	gapsBy time.Duration // at the latest; 0: there are none
}

func (g *gapState) nextGap() time.Duration { return subscribe.Earliest(g.gapsAt, g.gapsBy) }

// pumpSingle listens anew, with all topics, if there are topics that the stream does
// not carry, or if half of what it carries nobody wants any more. What comes while a
// request is on its way joins the next (L2M-22).
func (w *watch) pumpSingle(ctx context.Context) {
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

// takeDoubtful returns topics of which the server may not have heard yet: parts of a
// refused request before others.
func (w *watch) takeDoubtful(l *listen) (topics []*topic) {
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

// allowedSingle is allowed where there is one stream: a request that leaves topics out,
// because nobody wants them, waits behind the others.
func (w *watch) allowedSingle() bool {
	now := w.book.Now()
	if !w.freshDue(now) && !w.partsDue(now) && len(w.accepted) == 0 || w.allowed(now) {
		return true
	}
	if w.mergeAt != 0 {
		w.mergeAt = max(w.mergeAt, w.paidAt)
	}
	return false
}

// wakeResting returns the topics that rest without having been refused: if the server is
// asked anyway they need no gap of their own later.
func (w *watch) wakeResting() []*topic {
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

// interrupt returns the topics of a stream that is about to be left. Their changes
// may be missed.
func (w *watch) interrupt(s *sharedStream) []*topic {
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

// trims reports whether it is time to leave out the topics that nobody wants.
func (w *watch) trims() bool {
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

// tellGapsLater notes that a stream carries topics again whose changes may have been
// missed. Where there are several streams they are told of at once.
func (w *watch) tellGapsLater(topics []*topic) {
	if w.opts.single && slices.ContainsFunc(topics, func(t *topic) bool { return t.Missed }) {
		w.gapsAt = w.book.Now() + gapsAfter
		w.gapsBy = subscribe.Earliest(w.gapsBy, w.book.Now()+gapsWithin)
	}
}

// tellGaps tells of all changes that may have been missed, if it is time. Of topics
// that are being asked for there will be more to tell.
func (w *watch) tellGaps() {
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
