package subscribe

import (
	"slices"
	"sort"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// A Topic is one topic that a [Book] looks after. S is what the [Driver] knows of it.
// It belongs to the book's loop.
type Topic[S any] struct {
	fanout.Topic
	State S // the driver's
	// Missed says that there may have been changes of which nobody was told.
	Missed bool

	// Written with Book.mu held, which Hear reads them under.
	promised bool          // to somebody: changes are published
	fading   bool          // somebody has left: look before you publish
	asked    bool          // a request for it is on its way: changes are kept in early
	early    *fanout.Event // came before the answer to the request

	waiters []waiter
	payer   *Allowance // of whoever asked for it
	dueAt   time.Duration
	fadeAt  time.Duration // when it has been kept long enough
	booked  time.Duration // the first appointment of it in the agenda; 0: none
}

// A key names a topic within a profile.
type key struct {
	kind fanout.Kind
	uri  string
}

func keyOf(t fanout.Topic) key { return key{t.Kind, t.URI} }

// A waiter is one topic of a [Query] that is not settled.
type waiter struct {
	query *Query
	at    int // in query.Want
}

// Promised reports whether changes of t are published.
func (t *Topic[S]) Promised() bool { return t.promised }

// Awaited reports whether somebody waits for t.
func (t *Topic[S]) Awaited() bool { return len(t.waiters) > 0 }

// Needed reports whether t was promised or somebody waits for it.
func (t *Topic[S]) Needed() bool { return t.promised || t.Awaited() }

// Fading reports whether somebody who was promised t has left, and it has not been looked
// yet whether anybody is left.
func (t *Topic[S]) Fading() bool { return t.fading }

// Payer returns the allowance of whoever asked for t.
func (t *Topic[S]) Payer() *Allowance { return t.payer }

// Due returns the time that [Book.At] has set for t, 0 if none is to come.
func (t *Topic[S]) Due() time.Duration { return t.dueAt }

// Settle answers for t to all who wait for it.
func (t *Topic[S]) Settle(ok bool) {
	waiters := t.waiters
	t.waiters = nil
	for _, w := range waiters {
		w.query.settle(w.at, ok)
	}
}

// without takes the waiters of q off.
func (t *Topic[S]) without(q *Query) {
	kept := t.waiters[:0]
	for _, w := range t.waiters {
		if w.query != q {
			kept = append(kept, w)
		}
	}
	clear(t.waiters[len(kept):])
	t.waiters = kept
}

// keepEarly keeps a change until the server has agreed to tell of it. The latest stands
// for all; where they are about different URIs, the topic's own does.
func (t *Topic[S]) keepEarly(ev fanout.Event) {
	if t.early != nil && t.early.URI != ev.URI {
		ev.URI = t.URI
	}
	t.early = &ev
}

// An agenda says which topics to look at when, the first first. The first appointment of a
// topic counts: where it is looked at too early, it gets another.
type agenda[S any] []appointment[S]

type appointment[S any] struct {
	at time.Duration
	t  *Topic[S]
}

// add puts t on the agenda for the first of its times, most often at the end.
func (a *agenda[S]) add(t *Topic[S]) {
	at := Earliest(t.dueAt, t.fadeAt)
	if at == 0 || t.booked != 0 && t.booked <= at {
		return
	}
	t.booked = at
	i := sort.Search(len(*a), func(i int) bool { return (*a)[i].at > at })
	*a = slices.Insert(*a, i, appointment[S]{at, t})
}

// next returns when the first appointment is, 0 if there is none.
func (a agenda[S]) next() time.Duration {
	if len(a) == 0 {
		return 0
	}
	return a[0].at
}

// pop takes off the first topic that is to be looked at, nil if none is.
func (a *agenda[S]) pop(now time.Duration) *Topic[S] {
	for len(*a) > 0 && (*a)[0].at <= now {
		first := (*a)[0]
		(*a)[0] = appointment[S]{}
		*a = (*a)[1:]
		if first.t.booked == first.at {
			first.t.booked = 0
			return first.t
		}
	}
	return nil
}

// Earliest returns the least of the times that are set, 0 if none is.
func Earliest(times ...time.Duration) time.Duration {
	var out time.Duration
	for _, t := range times {
		if t != 0 && (out == 0 || t < out) {
			out = t
		}
	}
	return out
}
