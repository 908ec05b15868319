package modern

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// settleWithin is how long a Watch waits: what is not answered by then is not
// honored.
const settleWithin = 10 * time.Second

// A watchQuery is one call of Watch. After it was handed to the loop it belongs
// to it, answer and want aside.
type watchQuery struct {
	want   []fanout.Topic   // read-only
	answer chan watchAnswer // capacity 1, sent to once
	until  time.Duration    // when the wait is over, on the watch's clock
	honor  []bool           // for each of want
	left   int              // of want, not yet settled
	closed bool             // answered
}

type watchAnswer struct {
	honored []fanout.Topic
	err     error
}

// A waiter is one topic of a query that waits to be settled.
type waiter struct {
	q  *watchQuery
	at int // in q.want
}

func newWatchQuery(want []fanout.Topic) *watchQuery {
	return &watchQuery{
		want:   want,
		answer: make(chan watchAnswer, 1),
		honor:  make([]bool, len(want)),
		left:   len(want),
	}
}

// settle answers for one topic, and the query if it was the last.
func (wt waiter) settle(ok bool) {
	q := wt.q
	if q.closed {
		return
	}
	q.honor[wt.at] = ok
	if q.left--; q.left == 0 {
		q.finish(nil)
	}
}

// finish answers with what is honored so far, or with err.
func (q *watchQuery) finish(err error) {
	if q.closed {
		return
	}
	q.closed = true
	a := watchAnswer{err: err}
	if err == nil {
		a.honored = q.honored()
	}
	q.answer <- a
}

func (q *watchQuery) honored() []fanout.Topic {
	out := make([]fanout.Topic, 0, len(q.want)-q.left)
	for i, ok := range q.honor {
		if ok {
			out = append(out, q.want[i])
		}
	}
	return out
}

// await waits for the answer to q, which the loop always gives.
func (w *watch) await(ctx context.Context, q *watchQuery) ([]fanout.Topic, func(), error) {
	select {
	case a := <-q.answer:
		if a.err != nil {
			return nil, nil, fmt.Errorf("watching %s: %w", w.opts.name, a.err)
		}
		return a.honored, sync.OnceFunc(func() { w.drop(q) }), nil
	case <-ctx.Done():
		w.drop(q)
		return nil, nil, context.Cause(ctx)
	}
}

// drop tells the loop that the caller of q has lost interest. It never blocks.
func (w *watch) drop(q *watchQuery) {
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
		if !q.closed {
			w.strip(q)
		}
		w.fade(q)
	}
}

// admit takes q in. What is live already is settled at once.
func (w *watch) admit(q *watchQuery) {
	q.until = w.now() + settleWithin
	for i, t := range q.want {
		if t.Scope != w.profile.Scope || !t.Kind.Valid() {
			waiter{q, i}.settle(false)
			continue
		}
		e := w.track(t)
		w.setFading(e, false)
		if len(e.on) > 0 {
			w.promise(e)
			waiter{q, i}.settle(true)
			continue
		}
		e.waiters = append(e.waiters, waiter{q, i})
		w.seek(e)
	}
	if !q.closed {
		w.waiting = append(w.waiting, q)
	}
}

// expire ends the wait of the queries whose time is up.
func (w *watch) expire(now time.Duration) {
	for len(w.waiting) > 0 && (w.waiting[0].closed || w.waiting[0].until <= now) {
		q := w.waiting[0]
		w.waiting[0] = nil
		w.waiting = w.waiting[1:]
		switch {
		case q.closed:
		case w.awayErr != nil && len(q.honored()) == 0:
			w.failQuery(q, w.awayErr)
		default:
			q.finish(nil)
			w.strip(q)
		}
	}
}

// failWaiting answers all who wait with err.
func (w *watch) failWaiting(err error) {
	waiting := w.waiting
	w.waiting = nil
	for _, q := range waiting {
		if !q.closed {
			w.failQuery(q, err)
		}
	}
}

// failQuery answers q with err. Its caller has lost interest.
func (w *watch) failQuery(q *watchQuery, err error) {
	q.finish(err)
	w.strip(q)
	w.fade(q)
}

// strip takes q off the topics that it waits for.
func (w *watch) strip(q *watchQuery) {
	q.closed = true
	for _, t := range q.want {
		e := w.topics[t]
		if e == nil || len(e.waiters) == 0 {
			continue
		}
		kept := e.waiters[:0]
		for _, wt := range e.waiters {
			if wt.q != q {
				kept = append(kept, wt)
			}
		}
		clear(e.waiters[len(kept):])
		e.waiters = kept
		w.look(e)
	}
}

// fade lets the topics of q linger. Whether they are wanted is looked at only
// when that is over, so that it does not matter whether the caller left the
// index before it called release or right after.
func (w *watch) fade(q *watchQuery) {
	for _, t := range q.want {
		if e := w.topics[t]; e != nil && e.promised {
			w.setFading(e, true)
			w.linger(e, w.now()+w.opts.linger)
		}
	}
}
