package watch

import (
	"context"
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

// gapState is what the loop knows of changes that may have been missed, where there is a
// gap with every listen.
type gapState struct {
	gapsAt time.Duration // when they are told; 0: not before the next listen
	gapsBy time.Duration // at the latest; 0: there are none
}

// pumpSingle listens anew, with all topics, if there are topics that the stream does
// not carry, or if half of what it carries nobody wants any more. What comes while a
// request is on its way joins the next (L2M-22).
func (w *watch) pumpSingle(ctx context.Context) {
	if w.out > 0 || !w.allowedSingle() {
		return
	}
	l := &listen{topics: w.pick(w.accepted), part: true}
	w.accepted = nil
	doubtful := w.takePart()
	if len(doubtful) == 0 && len(w.parts) == 0 {
		doubtful, l.part = w.takeFresh(), false
	}
	if len(doubtful) > 0 && !l.part {
		doubtful = append(doubtful, w.wakeResting()...)
	}
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

// allowedSingle is allowed where there is one stream: a request that leaves topics out,
// because nobody wants them, waits behind the others.
func (w *watch) allowedSingle() bool {
	if !w.freshDue() && !w.partsDue() && len(w.accepted) == 0 || w.allowed() {
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
	for _, t := range w.resting() {
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
	if !w.opts.Single {
		return
	}
	for _, t := range topics {
		if t.Missed {
			w.gapsAt = w.book.Now() + gapsAfter
			w.gapsBy = subscribe.Earliest(w.gapsBy, w.book.Now()+gapsWithin)
			return
		}
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

func (w *watch) nextGap() time.Duration { return subscribe.Earliest(w.gapsAt, w.gapsBy) }
