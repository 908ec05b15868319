package watch

import (
	"fmt"
	"iter"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

// standing is what the upstream knows of a topic, as far as the watch knows.
type standing uint8

const (
	stOff    standing = iota // not subscribed
	stOn                     // subscribed; for a list kind: offered and promised
	stUnsure                 // a call ended without an answer
)

// phase is where a topic is on its way to another standing. A topic has one call
// on its way at most: that keeps the order in which the upstream hears of it.
type phase uint8

const (
	phIdle    phase = iota
	phQueued        // waits for its turn to call; what to call is decided then
	phUrgent        // the same, and a query waits for it
	phCalling       // a call is on its way
)

// A tracked is one topic that the watch looks after.
type tracked struct {
	topic fanout.Topic

	// Written by the loop alone, with watch.mu held; read by it without.
	acked  bool          // promised to somebody: changes are published
	asking bool          // a subscribe is on its way: changes are kept in raced
	fading bool          // somebody lost interest: look before you publish
	raced  *fanout.Event // written by changed too

	// The loop's own.
	standing standing
	phase    phase
	owed     bool          // a synthetic event is due once standing is stOn
	behind   bool          // the restoration waits for it
	tries    uint8         // calls that failed in a row
	due      time.Duration // when to look again; 0: not on the agenda
	waiters  []subscribe.Waiter

	payer  *subscribe.Allowance // whose call for it the next one is
	paidAt time.Duration        // when that may be sent; 0: it was not asked
}

func (e *tracked) isList() bool { return e.topic.Kind != fanout.ResourceUpdated }

// lookup returns the tracked topic, or nil.
func (w *Watch) lookup(t fanout.Topic) *tracked {
	if t.Kind == fanout.ResourceUpdated {
		return w.uris[t.URI]
	}
	return w.lists[t.Kind]
}

// track returns the tracked topic, which it begins if need be.
func (w *Watch) track(t fanout.Topic) *tracked {
	e := w.lookup(t)
	if e != nil {
		return e
	}
	e = &tracked{topic: t}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.Kind == fanout.ResourceUpdated {
		w.uris[t.URI] = e
	} else {
		w.lists[t.Kind] = e
	}
	return e
}

// forget ends the tracking of e: nothing of it is left upstream.
func (w *Watch) forget(e *tracked) {
	w.mu.Lock()
	e.acked, e.asking, e.raced = false, false, nil
	switch {
	case w.lookup(e.topic) != e: // a call of a lost session has ended late
	case e.isList():
		delete(w.lists, e.topic.Kind)
	default:
		delete(w.uris, e.topic.URI)
	}
	w.mu.Unlock()
	e.due, e.owed = 0, false
	w.answer(e, false)
	w.catchUp(e)
}

// all iterates over what is tracked. The loop may forget what it is given.
func (w *Watch) all() iter.Seq[*tracked] {
	return func(yield func(*tracked) bool) {
		for _, e := range w.lists {
			if !yield(e) {
				return
			}
		}
		for _, e := range w.uris {
			if !yield(e) {
				return
			}
		}
	}
}

func (w *Watch) empty() bool { return len(w.uris) == 0 && len(w.lists) == 0 }

// wanted is the desired state: somebody was promised the topic or waits for it,
// and the index, which alone knows, says that somebody still wants it.
func (w *Watch) wanted(e *tracked) bool {
	return (e.acked || len(e.waiters) > 0) && w.opts.Changes.Wanted(e.topic)
}

// A step is what brings a topic nearer to its desired state.
type step uint8

const (
	stepRest step = iota
	stepWait      // until e.due
	stepSubscribe
	stepUnsubscribe
	stepForget
)

// next compares desired with actual.
func (w *Watch) next(e *tracked) step {
	wanted := w.wanted(e)
	switch {
	case !wanted && e.standing == stOff:
		return stepForget
	case wanted && e.standing == stOn, w.session == nil:
		return stepRest
	case w.now() < e.due && !(wanted && e.fading): // due is about ending it then
		return stepWait
	case w.fromServer(e):
		return stepForget
	case wanted:
		return stepSubscribe
	}
	return stepUnsubscribe
}

// fromServer reports whether e is a list of whose changes the server tells without
// being asked: there is nothing to subscribe to.
func (w *Watch) fromServer(e *tracked) bool {
	return e.isList() && !w.offers.Polls.Has(e.topic.Kind)
}

// look brings e nearer to its desired state. It may be called at any time.
func (w *Watch) look(e *tracked) {
	if e.phase == phCalling || e.phase == phUrgent || e.phase == phQueued && len(e.waiters) == 0 {
		return // it is looked at when its turn comes, or its call is answered
	}
	switch w.next(e) {
	case stepSubscribe, stepUnsubscribe:
		w.enqueue(e)
	case stepForget:
		e.phase = phIdle // its place in the queue is void
		w.forget(e)
	}
}

// serve settles for the waiters of e what can be settled without a call, and
// looks after the rest.
func (w *Watch) serve(e *tracked) {
	switch {
	case w.session == nil: // restore will
	case w.fromServer(e):
		w.serveList(e)
	case !e.isList() && !w.offers.Subscribe:
		w.refuse(e, errNotOffered)
	case e.standing == stOn && e.phase != phCalling:
		w.accept(e)
	default:
		w.look(e)
	}
}

// serveList answers for a list kind. Without a channel nothing new is promised,
// but what was promised stands: the gap will be made up for.
func (w *Watch) serveList(e *tracked) {
	switch offered := w.offers.List(e.topic.Kind); {
	case !offered:
		w.refuse(e, errNotOffered)
	case w.offers.Channel:
		e.standing = stOn
		w.accept(e)
	case e.acked:
		e.standing = stOn
		w.answer(e, false)
		w.catchUp(e)
	default:
		w.refuse(e, errNotOffered)
	}
}

// accept acknowledges e to those who wait. From here on no change is lost: not
// even one that came before the answer.
func (w *Watch) accept(e *tracked) {
	w.mu.Lock()
	raced := e.raced
	e.acked, e.asking, e.raced = true, false, nil
	w.mu.Unlock()
	if raced != nil {
		w.opts.Changes.Publish(*raced)
		e.owed = false
	}
	w.catchUp(e)
	w.payOwed(e)
	w.answer(e, true)
}

// refuse answers no, ends the streams that were promised e, and forgets it.
func (w *Watch) refuse(e *tracked, reason error) {
	if e.acked {
		w.opts.Changes.End(e.topic, fmt.Errorf("%s no longer tells of it: %v", w.opts.Name, reason))
	}
	e.standing = stOff
	w.forget(e)
}

// answer settles e for all who wait.
func (w *Watch) answer(e *tracked, ok bool) {
	waiters := e.waiters
	e.waiters = nil
	for _, wt := range waiters {
		wt.Settle(ok)
	}
}

// revive takes back a fade, and any wait before the next try: somebody asks.
func (w *Watch) revive(e *tracked) {
	e.due, e.tries = 0, 0
	if e.fading {
		w.setFading(e, false)
	}
}

func (w *Watch) setFading(e *tracked, fading bool) {
	w.mu.Lock()
	e.fading = fading
	w.mu.Unlock()
}

// owe notes that changes of e may have been missed.
func (w *Watch) owe(e *tracked) {
	if e.acked || e.asking {
		e.owed = true
	}
}

// payOwed tells of the changes that may have been missed, once e is subscribed
// again, and so is everything else if a session is being restored (M2L-37).
func (w *Watch) payOwed(e *tracked) {
	if !e.owed || !e.acked || e.standing != stOn || w.behind > 0 {
		return
	}
	e.owed = false
	w.opts.Changes.Publish(fanout.Event{Topic: e.topic, URI: e.topic.URI})
}
