package watch

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// state is a watch's state of a topic.
type state struct {
	current subscription
	phase   phase
	behind  bool          // the restoration waits for it
	tries   uint8         // calls that failed in a row
	paidAt  time.Duration // when the next call may be sent; 0: no share was charged yet
}

// subscription is the state of a topic at the server, as far as the watch knows.
type subscription uint8

const (
	off    subscription = iota // not subscribed
	on                         // subscribed; for a list kind: offered and accepted
	unsure                     // a call ended without a response
)

// phase says what a topic does to reach what is needed. A topic has at most one call in
// flight, which keeps the order in which the server gets the calls.
type phase uint8

const (
	idle    phase = iota
	queued        // waits for a call; which one is decided then
	urgent        // the same, and a subscriber waits for it
	calling       // its call is in flight
)

// A step brings a topic closer to what is needed.
type step uint8

const (
	stepNone step = iota
	stepSubscribe
	stepUnsubscribe
	stepForget
)

func isList(t *topic) bool { return t.Kind != fanout.ResourceUpdated }

// fromServer reports whether t is a list whose changes the server sends without a
// subscription.
func (w *Watch) fromServer(t *topic) bool {
	return isList(t) && !isLoss(t) && !w.offers.Polls.Has(t.Kind)
}

// isLoss reports whether t is the loss of the session, which the watch itself tells of.
func isLoss(t *topic) bool { return t.Kind == fanout.StateLost }

// next returns the step that t needs.
func (w *Watch) next(t *topic) step {
	wanted := w.book.Wanted(t)
	switch {
	case !wanted && t.State.current == off:
		return stepForget
	case wanted && t.State.current == on, w.session == nil:
		return stepNone
	case w.book.Now() < t.Due(), !wanted && t.Fading():
		return stepNone // not yet
	case w.fromServer(t), isLoss(t):
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
		return // it is handled when its turn comes, or when its call has ended
	}
	switch w.next(t) {
	case stepSubscribe, stepUnsubscribe:
		w.enqueue(t)
	case stepForget:
		t.State.phase = idle // this makes its place in the queue invalid
		w.forget(t)
	}
}

// serve answers those who wait for t, if that needs no call, and otherwise queues a call.
// It resets the pause before the next attempt, because a subscriber waits.
func (w *Watch) serve(t *topic) {
	t.State.tries = 0
	w.book.At(t, 0)
	switch {
	case w.session == nil: // restore will
	case isLoss(t):
		t.State.current = on
		w.grant(t)
	case w.fromServer(t):
		w.serveList(t)
	case !isList(t) && !w.offers.Subscribe:
		w.deny(t, errNotOffered)
	case t.State.current == on && t.State.phase != calling:
		w.grant(t)
	default:
		w.Look(t)
	}
}

// serveList answers the subscribers of a list. Without a channel it accepts no new ones, and puts
// them off while there may be one soon. It does not end the old ones: they get missed changes later.
func (w *Watch) serveList(t *topic) {
	switch offered := w.offers.Lists.Has(t.Kind); {
	case offered && w.offers.Channel:
		t.State.current = on
		w.grant(t)
	case offered && t.Promised():
		t.State.current = on
		t.PutOff()
		w.restored(t)
	case offered && w.offers.Reopening:
		t.PutOff()
		w.deny(t, errNoChannel)
	default:
		w.deny(t, errNotOffered)
	}
}

// grant accepts t, which is subscribed.
func (w *Watch) grant(t *topic) {
	w.restored(t)
	w.book.Grant(t, w.behind == 0)
}

// deny refuses t to those who wait, ends the streams to which it was accepted, and forgets
// it.
func (w *Watch) deny(t *topic, reason error) {
	t.State.current = off
	w.book.Deny(t, reason)
	w.restored(t)
}

// forget removes t: the server has no subscription to it.
func (w *Watch) forget(t *topic) {
	w.book.Forget(t)
	w.restored(t)
}

// tellMissed reports changes of t that may have been missed, when it is subscribed again,
// and, if a session is being restored, so are all others (M2L-37).
func (w *Watch) tellMissed(t *topic) {
	if t.State.current == on && w.behind == 0 {
		w.book.TellMissed(t)
	}
}

// missed sends one event for every accepted topic, at once or when it is subscribed again
// (M2L-37). The session is not lost.
func (w *Watch) missed() {
	for t := range w.book.All() {
		if !isLoss(t) {
			w.book.Miss(t)
			w.tellMissed(t)
		}
	}
}
