package watch

import (
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

// place is where a topic waits for a stream.
type place uint8

const (
	plNone    place = iota // it has one, or is not needed
	plQueued               // in fresh, suspects or good
	plBidding              // a bid is out for it, whether or not it has a stream
	plResting              // in rests
)

// A tracked is one topic that the watch looks after.
type tracked struct {
	topic fanout.Topic

	// Written by the loop alone, with watch.mu held; read by it without.
	promised bool            // to somebody: changes are published
	fading   bool            // somebody lost interest: look before you publish
	on       []*sharedStream // that carry it: two while streams are merged

	// The loop's own.
	place   place
	owed    bool          // a synthetic event is due once it has a stream
	omitted bool          // the last acknowledgment left it out
	tries   uint8         // acknowledgments in a row that did
	fadeAt  time.Duration // when it has lingered enough
	inFades bool          // watch.fades has it
	waiters []subscribe.Waiter
}

// needed reports whether the topic must have a stream.
func (e *tracked) needed() bool { return e.promised || len(e.waiters) > 0 }

// topicState is what the loop knows of topics in all.
type topicState struct {
	promises int      // topics that are promised
	fades    []fading // ascending
	rests    []rest
}

// A fading is an appointment to see whether anybody still wants a topic.
type fading struct {
	at time.Duration
	e  *tracked
}

// A rest is a pause for topics that could not be had.
type rest struct {
	until  time.Duration
	topics []*tracked
	away   bool // no stream could be had at all
}

// track returns the tracked topic, which it begins if need be.
func (w *watch) track(t fanout.Topic) *tracked {
	if e := w.topics[t]; e != nil {
		return e
	}
	e := &tracked{topic: t}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.topics[t] = e
	return e
}

// tracks reports whether e is still looked after: lists may hold it longer.
func (w *watch) tracks(e *tracked) bool { return w.topics[e.topic] == e }

// look sees to it that e has a stream or is on its way to one if it is needed, and
// is forgotten if it is not and no stream carries it. It may be called at any time.
func (w *watch) look(e *tracked) {
	switch {
	case e.place == plBidding: // looked at when the bid ends
	case !e.needed() && len(e.on) == 0:
		w.mu.Lock()
		delete(w.topics, e.topic)
		w.mu.Unlock()
		e.place = plNone
	case !e.needed():
		w.excess()
	case len(e.on) == 0 && e.place == plNone:
		w.seek(e)
	}
}

// promise has changes of e published. It stands until nobody wants them.
func (w *watch) promise(e *tracked) {
	if e.promised {
		return
	}
	w.promises++
	w.mu.Lock()
	e.promised = true
	w.mu.Unlock()
}

func (w *watch) setFading(e *tracked, fading bool) {
	if e.fading == fading {
		return
	}
	w.mu.Lock()
	e.fading = fading
	w.mu.Unlock()
}

// answer settles e for all who wait.
func (w *watch) answer(e *tracked, ok bool) {
	waiters := e.waiters
	e.waiters = nil
	for _, wt := range waiters {
		wt.Settle(ok)
	}
}

// cue tells of changes of e that nobody has reported, but that may have been missed.
func (w *watch) cue(e *tracked) {
	w.opts.Changes.Publish(fanout.Event{Topic: e.topic, URI: e.topic.URI})
}

// linger has the loop see at a time whether e is still wanted.
func (w *watch) linger(e *tracked, at time.Duration) {
	e.fadeAt = at
	if !e.inFades {
		e.inFades = true
		w.fades = append(w.fades, fading{at, e})
	}
}

// faded takes back what was promised of topics that nobody wants any more.
func (w *watch) faded(now time.Duration) {
	for len(w.fades) > 0 && w.fades[0].at <= now {
		e := w.fades[0].e
		w.fades = w.fades[1:]
		e.inFades = false
		switch {
		case !e.fading || !w.tracks(e):
		case e.fadeAt > now:
			w.linger(e, e.fadeAt)
		case w.opts.Changes.Wanted(e.topic):
			w.setFading(e, false)
		default:
			w.withdraw(e)
		}
	}
	if len(w.fades) == 0 {
		w.fades = nil
	}
}

func (w *watch) nextFade() time.Duration {
	if len(w.fades) == 0 {
		return 0
	}
	return w.fades[0].at
}

// withdraw ends the promise of e. Its stream carries it until streams are merged.
func (w *watch) withdraw(e *tracked) {
	if e.promised {
		w.promises--
	}
	w.mu.Lock()
	e.promised, e.fading = false, false
	w.mu.Unlock()
	e.owed, e.omitted, e.tries = false, false, 0
	w.look(e)
}

// pauseTopics has topics wait until a time. away: no stream could be had at all, so
// that the next success ends the wait.
func (w *watch) pauseTopics(topics []*tracked, until time.Duration, away bool) {
	if len(topics) == 0 {
		return
	}
	for _, e := range topics {
		e.place = plResting
	}
	w.rests = append(w.rests, rest{until, topics, away})
}

// rested has the topics sought whose rest is over.
func (w *watch) rested(now time.Duration) {
	due := func(r rest) bool { return r.until <= now }
	if !slices.ContainsFunc(w.rests, due) {
		return
	}
	rests := w.rests
	w.rests = nil
	for _, r := range rests {
		if !due(r) {
			w.rests = append(w.rests, r)
			continue
		}
		for _, e := range r.topics {
			if e.place == plResting && w.tracks(e) {
				e.place = plNone
				w.look(e)
			}
		}
	}
}

// wake ends the rests of topics for which no stream could be had: one can.
func (w *watch) wake() {
	for i := range w.rests {
		if w.rests[i].away {
			w.rests[i].until = w.now()
		}
	}
}

func (w *watch) nextRest() time.Duration {
	var at time.Duration
	for _, r := range w.rests {
		at = earliest(at, r.until)
	}
	return at
}
