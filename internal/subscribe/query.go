package subscribe

import (
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A Query is one call of Watch. It belongs to the [Book] that it was given to.
type Query struct {
	want  []fanout.Topic // read-only
	share mcp.Share      // whose allowance it draws on; read-only
	until time.Duration  // when the wait is over, on the book's clock

	answers chan answer // capacity 1, sent to once
	honor   []bool      // for each of want
	left    int         // of want, not yet settled
	closed  bool        // answered, or not waited for

	dropped sync.Once // the caller's
}

type answer struct {
	honored []fanout.Topic
	err     error
}

// newQuery returns a Query of which nothing is settled. It keeps want.
func newQuery(want []fanout.Topic, share mcp.Share) *Query {
	return &Query{
		want:    want,
		share:   share,
		answers: make(chan answer, 1),
		honor:   make([]bool, len(want)),
		left:    len(want),
	}
}

// settle answers for one of the topics, and the Query if it was the last.
func (q *Query) settle(at int, ok bool) {
	if q.closed {
		return
	}
	q.honor[at] = ok
	if q.left--; q.left == 0 {
		q.finish(nil)
	}
}

// finish answers q with what is honored so far, or with err.
func (q *Query) finish(err error) {
	if q.closed {
		return
	}
	q.closed = true
	a := answer{err: err}
	if err == nil {
		a.honored = q.honored()
	}
	q.answers <- a
}

// honored lists the topics that were settled well.
func (q *Query) honored() []fanout.Topic {
	out := make([]fanout.Topic, 0, len(q.want)-q.left)
	for i, ok := range q.honor {
		if ok {
			out = append(out, q.want[i])
		}
	}
	return out
}
