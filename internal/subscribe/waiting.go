package subscribe

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Patience is how long a Watch waits for a server that is there: a topic without an answer
// by then is not in the acknowledgment, and if there was no answer at all, Watch fails. While the server starts it waits for the connect
// time-out, as other requests do, and then Patience from the start on.
const Patience = 10 * time.Second

// A start is what a book knows of the start of its server.
type start struct {
	starting bool          // in the last tick
	ended    time.Duration // when the server had started; 0: it has not
}

// readStart asks the driver whether the server is starting.
func (b *Book[S]) readStart() {
	starting := b.driver.Starting()
	if b.start.starting && !starting && b.driver.Away() == nil {
		b.start.ended = b.clock
	}
	b.start.starting = starting
}

// deadline returns when the wait of q ends. It does not decrease from one query to the
// next.
func (b *Book[S]) deadline(q *Query) time.Duration {
	longest := q.since + max(b.up.Settings.Timeouts.Connect, Patience)
	if b.start.starting {
		return longest
	}
	return min(max(q.since, b.start.ended), longest) + Patience
}

// add has q wait for its topics.
func (b *Book[S]) add(q *Query) {
	q.since = b.clock
	var ts []*Topic[S]
	for i, topic := range q.want {
		if topic.Scope != b.profile.Scope || !topic.Kind.Valid() {
			q.settle(i, false)
			continue
		}
		t := b.track(topic)
		if t.payer == nil || !t.Needed() {
			t.share, t.payer = q.share, b.up.allowances.Of(q.share)
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

// expire ends the wait of queries at their deadline.
func (b *Book[S]) expire() {
	b.readStart()
	for len(b.waiting) > 0 && (b.waiting[0].closed || b.deadline(b.waiting[0]) <= b.clock) {
		q := b.waiting[0]
		b.waiting[0] = nil
		b.waiting = b.waiting[1:]
		switch away := b.driver.Away(); {
		case q.closed:
		case away != nil && len(q.honored()) == 0:
			b.fail(q, away)
		case q.left == len(q.want):
			b.fail(q, mcp.ErrNotNow)
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
			t.fadeAt = b.clock + t.payer.Linger(b.up.Settings.Linger)
			b.agenda.add(t)
		default:
			b.driver.Look(t)
		}
	}
}
