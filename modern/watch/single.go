package watch

import (
	"context"
	"time"
)

const (
	// turnover is how long a server gets to end a stream before the next is asked
	// for. Go servers forget the lists of a session when its stream has ended, even if
	// the next has been acknowledged by then.
	turnover = 50 * time.Millisecond
	// cueAfter is how long after the last listen the missed changes are told.
	cueAfter = time.Second
	// cueWithin is how long that can be put off by yet another listen.
	cueWithin = 10 * time.Second
)

// cueState is what the loop knows of cues that are due, where there is a gap with
// every listen.
type cueState struct {
	cueAt time.Duration // 0: not before the next listen
	cueBy time.Duration // 0: nothing is owed on a stream
}

// pumpSingle listens anew, with all topics, if there are topics that the stream does
// not carry, or if half of what it carries nobody wants any more. What comes while a
// bid is out joins the next (L2M-22).
func (w *watch) pumpSingle(ctx context.Context) {
	if w.out > 0 || !w.allowedSingle() {
		return
	}
	b := &bid{topics: w.pick(w.had), suspect: true}
	w.had = nil
	doubted := w.takeSuspects()
	if len(doubted) == 0 && len(w.suspects) == 0 {
		doubted, b.suspect = w.takeFresh(), false
	}
	if len(doubted) > 0 && !b.suspect {
		doubted = append(doubted, w.rouse()...)
	}
	if len(doubted)+len(b.topics) == 0 && !w.trims() {
		return
	}
	for _, s := range w.streams {
		b.leaving = s
		w.detach(s)
		b.topics = append(b.topics, w.interrupt(s)...)
	}
	b.had = len(b.topics)
	b.topics = append(b.topics, doubted...)
	if len(b.topics) > 0 {
		w.cueAt = 0
		w.send(ctx, b)
	}
}

// rouse returns the topics that rest without having been refused: if the server is
// asked anyway they need no gap of their own later.
func (w *watch) rouse() []*tracked {
	var out []*tracked
	for _, r := range w.rests {
		for _, e := range r.topics {
			if e.place == plResting && !e.omitted && w.tracks(e) {
				e.place = plQueued
				out = append(out, e)
			}
		}
	}
	return out
}

// interrupt returns the topics of a stream that is about to be left. Their changes
// may be missed.
func (w *watch) interrupt(s *sharedStream) []*tracked {
	var out []*tracked
	for _, e := range s.topics {
		if e.promised {
			e.owed = true
			out = append(out, e)
		} else {
			w.look(e)
		}
	}
	return out
}

// trims reports whether it is time to leave out the topics that nobody wants.
func (w *watch) trims() bool {
	if w.mergeAt == 0 || w.now() < w.mergeAt {
		return false
	}
	w.mergeAt = 0
	carried, needed := 0, 0
	for _, e := range w.topics {
		if len(e.on) > 0 {
			carried++
			if e.needed() {
				needed++
			}
		}
	}
	return needed > 0 && 2*needed <= carried
}

// owedOn notes that a stream carries topics again whose changes may have been missed.
func (w *watch) owedOn(topics []*tracked) {
	if !w.opts.Single {
		return // they are told at once
	}
	for _, e := range topics {
		if e.owed {
			w.cueAt = w.now() + cueAfter
			w.cueBy = earliest(w.cueBy, w.now()+cueWithin)
			return
		}
	}
}

// pay tells of the changes of e that may have been missed.
func (w *watch) pay(e *tracked) {
	if !e.owed || w.opts.Single {
		return
	}
	e.owed = false
	w.cue(e)
}

// payCues tells of all changes that may have been missed, if it is time. Of topics
// that a listen is on its way for there is another cue to come.
func (w *watch) payCues(now time.Duration) {
	if at := w.nextCue(); at == 0 || now < at {
		return
	}
	w.cueAt, w.cueBy = 0, 0
	for _, e := range w.topics {
		if e.owed && e.promised && (len(e.on) > 0 || e.place == plBidding) {
			e.owed = len(e.on) == 0
			w.cue(e)
		}
	}
}

func (w *watch) nextCue() time.Duration { return earliest(w.cueAt, w.cueBy) }
