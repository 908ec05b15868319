package subscribe

import (
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A Query is one call of Watch. It belongs to the [Book] that got it.
type Query struct {
	want  []fanout.Topic // read-only
	share mcp.Share      // whose allowance it uses; read-only
	since time.Duration  // the beginning of the wait, on the book's clock

	answers chan answer // capacity 1, sent to once
	honor   []bool      // for each topic of want
	left    int         // topics of want that are not settled
	later   bool        // some were put off: they may be accepted later
	closed  bool        // answered, or not waited for any more

	dropped sync.Once // used by the caller
}

type answer struct {
	honored []fanout.Topic
	err     error
}

// newQuery returns an unsettled Query. It keeps want.
func newQuery(want []fanout.Topic, share mcp.Share) *Query {
	return &Query{
		want:    want,
		share:   share,
		answers: make(chan answer, 1),
		honor:   make([]bool, len(want)),
		left:    len(want),
	}
}

// settle answers one of the topics. After the last topic it answers the Query.
func (q *Query) settle(at int, ok bool) {
	if q.closed {
		return
	}
	q.honor[at] = ok
	if q.left--; q.left == 0 {
		q.finish(nil)
	}
}

// putOff answers one of the topics that may be accepted later.
func (q *Query) putOff(at int) {
	q.later = true
	q.settle(at, false)
}

// finish answers q with the topics accepted so far, or with err. If there are none, one that was
// put off makes it an error.
func (q *Query) finish(err error) {
	if q.closed {
		return
	}
	q.closed = true
	a := answer{err: err}
	if err == nil {
		a.honored = q.honored()
	}
	if err == nil && len(a.honored) == 0 && q.later {
		a.err = mcp.ErrNotNow
	}
	q.answers <- a
}

// honored returns the accepted topics.
func (q *Query) honored() []fanout.Topic {
	out := make([]fanout.Topic, 0, len(q.want)-q.left)
	for i, ok := range q.honor {
		if ok {
			out = append(out, q.want[i])
		}
	}
	return out
}
