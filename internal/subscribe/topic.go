package subscribe

import (
	"slices"
	"sort"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A Topic is a topic of a [Book]. S is the [Driver]'s state of it. It is used by the book's
// loop only.
type Topic[S any] struct {
	fanout.Topic
	State S // the driver's state
	// Missed says that subscribers may have missed changes.
	Missed bool

	// Written with topics.mu held, under which Hear reads them.
	promised bool          // changes are published
	fading   bool          // a subscriber has left: check for others before publishing
	asked    bool          // a request for it is in flight: changes are kept in early
	early    *fanout.Event // arrived before the response to the request; Hear writes it

	waiters []waiter
	share   mcp.Share  // who requested it
	payer   *Allowance // of share
	dueAt   time.Duration
	fadeAt  time.Duration // until when it stays without subscribers
	booked  time.Duration // its first appointment in the agenda; 0: none
}

// A key identifies a topic within a profile.
type key struct {
	kind fanout.Kind
	uri  string
}

func keyOf(t fanout.Topic) key { return key{t.Kind, t.URI} }

// A waiter is one topic of a [Query] that is not settled.
type waiter struct {
	query *Query
	at    int // index in query.want
}

// Promised reports whether t is accepted: its changes are published.
func (t *Topic[S]) Promised() bool { return t.promised }

// Awaited reports whether a query waits for t.
func (t *Topic[S]) Awaited() bool { return len(t.waiters) > 0 }

// Needed reports whether t is accepted or a query waits for it.
func (t *Topic[S]) Needed() bool { return t.promised || t.Awaited() }

// Fading reports whether a subscriber of t has left, and it is not yet known whether there
// are others.
func (t *Topic[S]) Fading() bool { return t.fading }

// Share returns the share that requested t.
func (t *Topic[S]) Share() mcp.Share { return t.share }

// Payer returns the allowance of the share that requested t.
func (t *Topic[S]) Payer() *Allowance { return t.payer }

// Due returns the time that [Book.At] has set for t; 0 if there is none.
func (t *Topic[S]) Due() time.Duration { return t.dueAt }

// Settle answers t for all queries that wait for it.
func (t *Topic[S]) Settle(ok bool) {
	for _, w := range t.takeWaiters() {
		w.query.settle(w.at, ok)
	}
}

// PutOff answers those who wait for t that the server may report its changes later.
func (t *Topic[S]) PutOff() {
	for _, w := range t.takeWaiters() {
		w.query.putOff(w.at)
	}
}

func (t *Topic[S]) takeWaiters() []waiter {
	waiters := t.waiters
	t.waiters = nil
	return waiters
}

// without removes the waiters of q.
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

// keepEarly keeps a change until the server has accepted t. It keeps one: the last, or the
// one for the topic's own URI.
func (t *Topic[S]) keepEarly(ev fanout.Event) {
	if t.early != nil && t.early.URI != ev.URI {
		ev.URI = t.URI
	}
	t.early = &ev
}

// An agenda says when to handle which topic, the earliest first. Only the first appointment
// of a topic counts: if that is too early, the topic gets another.
type agenda[S any] []appointment[S]

type appointment[S any] struct {
	at time.Duration
	t  *Topic[S]
}

// add adds t at the earliest of its times, usually at the end.
func (a *agenda[S]) add(t *Topic[S]) {
	at := Earliest(t.dueAt, t.fadeAt)
	if at == 0 || t.booked != 0 && t.booked <= at {
		return
	}
	t.booked = at
	i := sort.Search(len(*a), func(i int) bool { return (*a)[i].at > at })
	*a = slices.Insert(*a, i, appointment[S]{at, t})
}

// next returns the time of the first appointment; 0 if there is none.
func (a agenda[S]) next() time.Duration {
	if len(a) == 0 {
		return 0
	}
	return a[0].at
}

// pop removes and returns the first topic that is due, or nil.
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

// Earliest returns the earliest of the times that are set; 0 if none is.
func Earliest(times ...time.Duration) time.Duration {
	var out time.Duration
	for _, t := range times {
		if t != 0 && (out == 0 || t < out) {
			out = t
		}
	}
	return out
}
