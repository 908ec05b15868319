package subscribe

import "time"

// Patience is how long a Watch waits: a topic without an answer by then is not in the
// acknowledgment.
const Patience = 10 * time.Second

// add has q wait for its topics.
func (b *Book[S]) add(q *Query) {
	q.until = b.clock + Patience
	var ts []*Topic[S]
	for i, topic := range q.want {
		if topic.Scope != b.profile.Scope || !topic.Kind.Valid() {
			q.settle(i, false)
			continue
		}
		t := b.track(topic)
		if t.payer == nil || !t.Needed() {
			t.payer = b.up.allowances.Of(q.share)
		}
		b.setFading(t, false)
		t.waiters = append(t.waiters, waiter{q, i})
		ts = append(ts, t)
	}
	if !q.closed {
		b.waiting = append(b.waiting, q)
		b.driver.Serve(ts)
	}
}

// expire ends the wait of queries after Patience.
func (b *Book[S]) expire() {
	for len(b.waiting) > 0 && (b.waiting[0].closed || b.waiting[0].until <= b.clock) {
		q := b.waiting[0]
		b.waiting[0] = nil
		b.waiting = b.waiting[1:]
		switch away := b.driver.Away(); {
		case q.closed:
		case away != nil && len(q.honored()) == 0:
			b.fail(q, away)
		default:
			q.finish(nil)
			b.strip(q)
		}
	}
}

// fail answers q with err, and ends its subscription.
func (b *Book[S]) fail(q *Query, err error) {
	q.finish(err)
	b.strip(q)
	b.fade(q)
}

// leave handles the topics of subscribers that have left.
func (b *Book[S]) leave() {
	for _, q := range b.takeDropped() {
		b.strip(q)
		b.fade(q)
	}
}

// strip removes q from the topics for which it waits. Those that are not needed any more
// are undone.
func (b *Book[S]) strip(q *Query) {
	q.closed = true
	for _, topic := range q.want {
		if t := b.of(topic); t != nil && t.Awaited() {
			t.without(q)
			b.driver.Look(t)
		}
	}
}

// fade keeps the topics of q for a while. Whether they have other subscribers is checked
// only at the end, so that the subscriber may leave the index before or after it ends its
// subscription.
func (b *Book[S]) fade(q *Query) {
	for _, topic := range q.want {
		switch t := b.of(topic); {
		case t == nil:
		case t.promised:
			b.setFading(t, true)
			t.fadeAt = b.clock + t.payer.Linger(b.up.Linger)
			b.agenda.add(t)
		default:
			b.driver.Look(t)
		}
	}
}
