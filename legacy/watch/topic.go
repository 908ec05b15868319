package watch

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// state is what a watch knows of a topic.
type state struct {
	standing standing
	phase    phase
	behind   bool          // the restoration waits for it
	tries    uint8         // calls that failed in a row
	paidAt   time.Duration // when the next call may be sent; 0: that was not asked
}

// standing is what the server knows of a topic, as far as the watch knows.
type standing uint8

const (
	off    standing = iota // not subscribed
	on                     // subscribed; for a list kind: offered and promised
	unsure                 // a call ended without an answer
)

// phase is where a topic is on its way to another standing. A topic has one call on its
// way at most: that keeps the order in which the server hears of it.
type phase uint8

const (
	idle    phase = iota
	queued        // waits for its turn to call; what to call is decided then
	urgent        // the same, and somebody waits for it
	calling       // a call is on its way
)

// A step is what brings a topic nearer to what is needed.
type step uint8

const (
	stepNone step = iota
	stepSubscribe
	stepUnsubscribe
	stepForget
)

func isList(t *topic) bool { return t.Kind != fanout.ResourceUpdated }

// fromServer reports whether t is a list of whose changes the server tells without being
// asked: there is nothing to subscribe to.
func (w *Watch) fromServer(t *topic) bool { return isList(t) && !w.offers.Polls.Has(t.Kind) }

// next compares what is needed of t with what the server knows.
func (w *Watch) next(t *topic) step {
	wanted := w.book.Wanted(t)
	switch {
	case !wanted && t.State.standing == off:
		return stepForget
	case wanted && t.State.standing == on, w.session == nil:
		return stepNone
	case w.book.Now() < t.Due(), !wanted && t.Fading():
		return stepNone // not yet
	case w.fromServer(t):
		return stepForget
	case wanted:
		return stepSubscribe
	}
	return stepUnsubscribe
}

// Look implements [subscribe.Driver].
func (w *Watch) Look(t *topic) {
	switch phase := t.State.phase; {
	case phase == calling, phase == urgent, phase == queued && !t.Awaited():
		return // it is looked at when its turn comes, or its call is answered
	}
	switch w.next(t) {
	case stepSubscribe, stepUnsubscribe:
		w.enqueue(t)
	case stepForget:
		t.State.phase = idle // its place in the queue is void
		w.forget(t)
	}
}

// serve settles for those who wait for t what can be settled without a call, and looks
// after the rest. It takes back any wait before the next try: somebody asks.
func (w *Watch) serve(t *topic) {
	t.State.tries = 0
	w.book.At(t, 0)
	switch {
	case w.session == nil: // restore will
	case w.fromServer(t):
		w.serveList(t)
	case !isList(t) && !w.offers.Subscribe:
		w.deny(t, errNotOffered)
	case t.State.standing == on && t.State.phase != calling:
		w.grant(t)
	default:
		w.Look(t)
	}
}

// serveList answers for a list kind. Without a channel nothing new is promised, but what
// was promised stands: the gap will be made up for.
func (w *Watch) serveList(t *topic) {
	switch offered := w.offers.List(t.Kind); {
	case offered && w.offers.Channel:
		t.State.standing = on
		w.grant(t)
	case offered && t.Promised():
		t.State.standing = on
		t.Settle(false)
		w.restored(t)
	default:
		w.deny(t, errNotOffered)
	}
}

// grant promises t, which is subscribed.
func (w *Watch) grant(t *topic) {
	w.restored(t)
	w.book.Grant(t, w.behind == 0)
}

// deny answers no, ends the streams that were promised t, and forgets it.
func (w *Watch) deny(t *topic, reason error) {
	t.State.standing = off
	w.book.Deny(t, reason)
	w.restored(t)
}

// forget ends the tracking of t: nothing of it is left at the server.
func (w *Watch) forget(t *topic) {
	w.book.Forget(t)
	w.restored(t)
}

// tellMissed tells of the changes of t that may have been missed, once it is subscribed
// again, and so is everything else if a session is being restored (M2L-37).
func (w *Watch) tellMissed(t *topic) {
	if t.State.standing == on && w.behind == 0 {
		w.book.TellMissed(t)
	}
}

// missed gives every promised topic one event, at once or when it is subscribed again
// (M2L-37).
func (w *Watch) missed() {
	for t := range w.book.All() {
		w.book.Miss(t)
		w.tellMissed(t)
	}
}
