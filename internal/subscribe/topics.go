package subscribe

import (
	"fmt"
	"iter"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// topics are those of one [Book]. Its loop changes them, and any goroutine may have them Hear
// a change.
type topics[S any] struct {
	up *source // read-only

	// mu guards all, and the fields of topics that say so. Only the loop writes them, but for early; it
	// reads the others without the lock. It is a leaf: under it only the functions given to Hear
	// and Update are called.
	mu  sync.Mutex
	all map[key]*Topic[S]

	promises int // number of accepted topics; used by the loop only
}

// of returns a topic, or nil.
func (ts *topics[S]) of(topic fanout.Topic) *Topic[S] { return ts.all[keyOf(topic)] }

// track returns the topic, and adds it if necessary.
func (ts *topics[S]) track(topic fanout.Topic) *Topic[S] {
	t := ts.of(topic)
	if t == nil {
		t = &Topic[S]{Topic: topic}
		ts.Update(func() { ts.all[keyOf(topic)] = t })
	}
	return t
}

// Update runs f while Hear does not read topics: for the state that the carries function of
// Hear reads.
func (ts *topics[S]) Update(f func()) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	f()
}

// All iterates over the topics: lists, resources, and then the losses of sessions, which are told
// of last. Topics may be forgotten during the iteration.
func (ts *topics[S]) All() iter.Seq[*Topic[S]] {
	return func(yield func(*Topic[S]) bool) {
		for kind := fanout.ToolsListChanged; kind < fanout.ResourceUpdated; kind++ {
			if t := ts.all[key{kind, ""}]; t != nil && !yield(t) {
				return
			}
		}
		for k, t := range ts.all {
			if k.kind == fanout.ResourceUpdated && !yield(t) {
				return
			}
		}
		if t := ts.all[key{fanout.StateLost, ""}]; t != nil {
			yield(t)
		}
	}
}

// Len returns the number of topics.
func (ts *topics[S]) Len() int { return len(ts.all) }

// Tracks reports whether t still belongs to the book: queues may contain it longer.
func (ts *topics[S]) Tracks(t *Topic[S]) bool { return ts.all[keyOf(t.Topic)] == t }

// Wanted reports whether t is needed, and has subscribers in the index, which alone knows
// that.
func (ts *topics[S]) Wanted(t *Topic[S]) bool { return t.Needed() && ts.up.Changes.Wanted(t.Topic) }

// Ask says that a request for t is being sent: changes that arrive before its response are
// kept.
func (ts *topics[S]) Ask(t *Topic[S]) { ts.Update(func() { t.asked = true }) }

// Grant accepts t for those who wait for it. From then on no change is lost, not even one
// that arrived before the response. With tell, changes that may have been missed are
// reported first.
func (ts *topics[S]) Grant(t *Topic[S], tell bool) {
	if !t.promised {
		ts.promises++
	}
	var early *fanout.Event
	ts.Update(func() {
		early = t.early // Hear may be keeping one
		t.promised, t.asked, t.early = true, false, nil
	})
	if early != nil {
		if early.URI == "" || early.URI == t.URI { // and not of a part of it
			t.Missed = false
		}
		ts.up.Changes.Publish(*early)
	}
	if tell {
		ts.TellMissed(t)
	}
	t.Settle(true)
}

// Withdraw ends the subscription to t, which has no subscribers.
func (ts *topics[S]) Withdraw(t *Topic[S]) {
	if t.promised {
		ts.promises--
	}
	ts.Update(func() { t.promised, t.fading, t.asked, t.early = false, false, false, nil })
	t.Missed, t.fadeAt = false, 0
}

// Deny refuses t to those who wait, ends the streams to which it was accepted, and forgets
// it.
func (ts *topics[S]) Deny(t *Topic[S], reason error) {
	if t.promised {
		ts.up.Changes.End(t.Topic, fmt.Errorf("%s no longer reports its changes: %v", ts.up.Name, reason))
	}
	ts.Forget(t)
}

// Forget removes t: the server has no subscription to it. It refuses t to those who wait.
func (ts *topics[S]) Forget(t *Topic[S]) {
	ts.Withdraw(t)
	ts.Update(func() {
		if ts.Tracks(t) { // unless a new one was added
			delete(ts.all, keyOf(t.Topic))
		}
	})
	t.dueAt = 0
	t.Settle(false)
}

// Tell publishes that t may have changed.
func (ts *topics[S]) Tell(t *Topic[S]) {
	t.Missed = false
	ts.up.Changes.Publish(fanout.Event{Topic: t.Topic, URI: t.URI})
}

// TellMissed publishes a change of t if it is accepted and changes may have been missed.
func (ts *topics[S]) TellMissed(t *Topic[S]) {
	if t.Missed && t.promised {
		ts.Tell(t)
	}
}

// Miss records that changes of t may have been missed, if it is accepted or will be soon.
func (ts *topics[S]) Miss(t *Topic[S]) { t.Missed = t.Missed || t.promised || t.asked }

func (ts *topics[S]) setFading(t *Topic[S], fading bool) {
	if t.fading != fading {
		ts.Update(func() { t.fading = fading })
	}
	if !fading {
		t.fadeAt = 0
	}
}
