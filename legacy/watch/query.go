package watch

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

// Drop implements [subscribe.Loop].
func (w *Watch) Drop(q *subscribe.Query) {
	w.pokes.mu.Lock()
	w.pokes.dropped = append(w.pokes.dropped, q)
	w.pokes.mu.Unlock()
	w.poke()
}

// admit takes q in.
func (w *Watch) admit(q *subscribe.Query) {
	q.Until = w.now() + subscribe.Patience
	if w.refreshOffers() {
		w.makeUp()
	}
	for i, t := range q.Want {
		if t.Scope != w.profile.Scope {
			subscribe.Waiter{Query: q, At: i}.Settle(false)
			continue
		}
		e := w.track(t)
		w.revive(e)
		if e.payer == nil || !e.acked && len(e.waiters) == 0 {
			e.payer = w.table.allowances.Of(q.Share)
		}
		e.waiters = append(e.waiters, subscribe.Waiter{Query: q, At: i})
		w.serve(e)
	}
	if !q.Closed() {
		w.waiting = append(w.waiting, q)
	}
}

// expire ends the wait of the queries whose time is up.
func (w *Watch) expire(now time.Duration) {
	for len(w.waiting) > 0 && (w.waiting[0].Closed() || w.waiting[0].Until <= now) {
		q := w.waiting[0]
		w.waiting[0] = nil
		w.waiting = w.waiting[1:]
		if q.Closed() {
			continue
		}
		if w.session == nil && len(q.Honored()) == 0 {
			w.failQuery(q, w.awayError())
			continue
		}
		q.Finish(nil)
		w.strip(q)
	}
}

// failWaiting answers all who wait with err.
func (w *Watch) failWaiting(err error) {
	waiting := w.waiting
	w.waiting = nil
	for _, q := range waiting {
		if !q.Closed() {
			w.failQuery(q, err)
		}
	}
}

// failQuery answers q with err. Its caller has lost interest.
func (w *Watch) failQuery(q *subscribe.Query, err error) {
	q.Finish(err)
	w.strip(q)
	w.fade(q)
}

// strip takes q off the topics that it waits for. Those that nobody else waits
// for, and that were acknowledged to nobody, are undone.
func (w *Watch) strip(q *subscribe.Query) {
	q.GiveUp()
	for _, t := range q.Want {
		e := w.lookup(t)
		if e == nil || len(e.waiters) == 0 {
			continue
		}
		e.waiters = subscribe.Without(e.waiters, q)
		w.look(e)
	}
}

// fade lets the topics of q linger. Whether they are wanted is looked at only
// when that is over, so that it does not matter whether the caller left the
// index before it called release or right after.
func (w *Watch) fade(q *subscribe.Query) {
	for _, t := range q.Want {
		e := w.lookup(t)
		if e == nil {
			continue
		}
		if !e.acked { // nothing was promised
			w.look(e)
			continue
		}
		w.setFading(e, true)
		w.schedule(e, w.now()+e.payer.Linger(w.opts.Linger))
	}
}
