package subscribe

import (
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// Patience is how long a Watch waits: what is not answered by then is left out of
// the acknowledgment.
const Patience = 10 * time.Second

// A Query is one call of Watch. After it was handed to a [Loop] it belongs to it,
// Want aside.
type Query struct {
	Want  []fanout.Topic // read-only
	Share mcp.Share      // whose allowance it draws on; read-only
	Until time.Duration  // when the wait is over, on the loop's clock; the loop's own

	answers chan answer // capacity 1, sent to once
	honor   []bool      // for each of Want
	left    int         // of Want, not yet settled
	closed  bool        // answered, or not waited for

	dropped sync.Once // the caller's
}

type answer struct {
	honored []fanout.Topic
	err     error
}

// NewQuery returns a Query of which nothing is settled. It keeps want.
func NewQuery(want []fanout.Topic) *Query {
	return &Query{
		Want:    want,
		answers: make(chan answer, 1),
		honor:   make([]bool, len(want)),
		left:    len(want),
	}
}

// Closed reports whether nobody waits for q any more: it was answered, or given up.
func (q *Query) Closed() bool { return q.closed }

// GiveUp closes q without an answer: its caller has gone.
func (q *Query) GiveUp() { q.closed = true }

// Finish answers q with what is honored so far, or with err.
func (q *Query) Finish(err error) {
	if q.closed {
		return
	}
	q.closed = true
	a := answer{err: err}
	if err == nil {
		a.honored = q.Honored()
	}
	q.answers <- a
}

// Honored lists the topics that were settled well.
func (q *Query) Honored() []fanout.Topic {
	out := make([]fanout.Topic, 0, len(q.Want)-q.left)
	for i, ok := range q.honor {
		if ok {
			out = append(out, q.Want[i])
		}
	}
	return out
}

// A Waiter is one topic of a [Query] that waits to be settled.
type Waiter struct {
	Query *Query
	At    int // in Query.Want
}

// Settle answers for the topic, and the Query if it was the last.
func (w Waiter) Settle(ok bool) {
	q := w.Query
	if q.closed {
		return
	}
	q.honor[w.At] = ok
	if q.left--; q.left == 0 {
		q.Finish(nil)
	}
}

// Without takes the waiters of q out of ws, which it reuses.
func Without(ws []Waiter, q *Query) []Waiter {
	kept := ws[:0]
	for _, w := range ws {
		if w.Query != q {
			kept = append(kept, w)
		}
	}
	clear(ws[len(kept):])
	return kept
}
