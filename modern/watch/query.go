package watch

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

// Drop implements [subscribe.Loop].
func (w *watch) Drop(q *subscribe.Query) {
	w.drops.mu.Lock()
	w.drops.queries = append(w.drops.queries, q)
	w.drops.mu.Unlock()
	select {
	case w.poked <- struct{}{}:
	default: // it will look anyway
	}
}

// takeDropped looks after the topics of those who have lost interest.
func (w *watch) takeDropped() {
	w.drops.mu.Lock()
	dropped := w.drops.queries
	w.drops.queries = nil
	w.drops.mu.Unlock()
	for _, q := range dropped {
		if !q.Closed() {
			w.strip(q)
		}
		w.fade(q)
	}
}

// admit takes q in. What is live already is settled at once.
func (w *watch) admit(q *subscribe.Query) {
	q.Until = w.now() + subscribe.Patience
	for i, t := range q.Want {
		if t.Scope != w.profile.Scope || !t.Kind.Valid() {
			subscribe.Waiter{Query: q, At: i}.Settle(false)
			continue
		}
		e := w.track(t)
		w.setFading(e, false)
		if len(e.on) > 0 {
			w.promise(e)
			subscribe.Waiter{Query: q, At: i}.Settle(true)
			continue
		}
		e.waiters = append(e.waiters, subscribe.Waiter{Query: q, At: i})
		w.seek(e)
	}
	if !q.Closed() {
		w.waiting = append(w.waiting, q)
	}
}

// expire ends the wait of the queries whose time is up.
func (w *watch) expire(now time.Duration) {
	for len(w.waiting) > 0 && (w.waiting[0].Closed() || w.waiting[0].Until <= now) {
		q := w.waiting[0]
		w.waiting[0] = nil
		w.waiting = w.waiting[1:]
		switch {
		case q.Closed():
		case w.awayErr != nil && len(q.Honored()) == 0:
			w.failQuery(q, w.awayErr)
		default:
			q.Finish(nil)
			w.strip(q)
		}
	}
}

// failWaiting answers all who wait with err.
func (w *watch) failWaiting(err error) {
	waiting := w.waiting
	w.waiting = nil
	for _, q := range waiting {
		if !q.Closed() {
			w.failQuery(q, err)
		}
	}
}

// failQuery answers q with err. Its caller has lost interest.
func (w *watch) failQuery(q *subscribe.Query, err error) {
	q.Finish(err)
	w.strip(q)
	w.fade(q)
}

// strip takes q off the topics that it waits for.
func (w *watch) strip(q *subscribe.Query) {
	q.GiveUp()
	for _, t := range q.Want {
		e := w.topics[t]
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
func (w *watch) fade(q *subscribe.Query) {
	for _, t := range q.Want {
		if e := w.topics[t]; e != nil && e.promised {
			w.setFading(e, true)
			w.linger(e, w.now()+w.payer.Linger(w.opts.Linger))
		}
	}
}
