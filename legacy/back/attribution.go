package back

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// holdTimeout bounds how long a question waits until it is clear whose it is.
	holdTimeout = 10 * time.Second
	// breath is how long after its question a call may have asked another on
	// the same breath. Only then is its server taken to wait.
	breath = 20 * time.Millisecond
	// hauntTime is how long after its cancellation a call may still be heard.
	hauntTime = 250 * time.Millisecond
)

// nominateLocked finds the calls that a question may belong to: the one on whose
// stream it came or whose task it names, else those that run and may be asked.
// roots/list is not about a call: any will do.
//
// A server that asks twice on one breath asks the second time for a call that
// waits already. So a waiting call counts until its questions have settled, and
// where nothing runs at all.
func (s *session) nominateLocked(q *question, from *call) {
	isRoots := q.m.Method == spec.MethodRootsList
	if c, told := s.toldLocked(q, from); told {
		q.told = true
		switch {
		case c != nil:
			q.candidates = []*call{c}
		case isRoots && !q.news:
			s.roots.owe(q)
		}
		return
	}
	running, parked := s.askableLocked(q.came)
	if len(running) == 0 && (len(parked) == 1 || isRoots) {
		running = parked
	}
	if isRoots {
		q.candidates = running[:min(1, len(running))]
		if len(running) == 0 {
			s.roots.owe(q)
		}
		return
	}
	q.candidates = running
	q.doubtful = time.Now().Before(s.haunted)
	if len(running)+len(parked) > 0 && !s.link.wakes() {
		s.onAmbiguous() // its streams don't tell: from now on calls queue for lanes
	}
}

// toldLocked returns the call that a question belongs to, nil for none, and
// whether that is told at all.
func (s *session) toldLocked(q *question, from *call) (*call, bool) {
	if q.task != "" && s.tasks[q.task] != nil {
		return s.tasks[q.task].c, true
	}
	if q.m.Method == spec.MethodRootsList {
		if c, told := s.roots.claim(q); told {
			return c, true
		}
	}
	if from != nil && from.mayBeAsked {
		return from, true
	}
	return nil, from != nil
}

// askableLocked returns the calls whose questions can't be told apart, oldest
// first: those that may have asked one which came at a time, and the others, which
// wait.
func (s *session) askableLocked(came time.Time) (running, parked []*call) {
	s.calls.each(func(w *wireCall) {
		switch c := clientCall(w); {
		case c == nil:
		case c.mayHaveAsked(came):
			running = append(running, c)
		case c.stage() == atRest:
			parked = append(parked, c)
		}
	})
	byID := func(a, b *call) int { return int(a.id - b.id) }
	slices.SortFunc(running, byID)
	slices.SortFunc(parked, byID)
	return running, parked
}

// unaskable says why a question can't be put to anybody, whosever it may be.
func (s *session) unaskable(q *question) error {
	switch {
	case len(q.candidates) == 0:
		return wire.Errorf(spec.CodeInvalidRequest,
			"%s: no call is under way that the question could belong to; mcpbridge can ask a client only while it runs one", q.m.Method)
	case q.doubtful:
		return s.doubt(q)
	}
	// All calls of a session are of one profile.
	if need := mcp.MissingCapability(q.candidates[0].capabilities(), q.m.Method, q.m.Params); need != nil {
		return undeclared(q, need)
	}
	return nil
}

// doubt is why a question is refused that may be a cancelled call's.
func (s *session) doubt(q *question) error {
	s.drop("ambiguous question")
	return wire.Errorf(spec.CodeInternal, "%s: a call was cancelled that the question may belong to; ask again", q.m.Method)
}

// attribute returns the call that a question belongs to, parked. With several
// candidates it waits until one is left: the others have ended, or wait for
// their own clients' answers.
func (s *session) attribute(ctx context.Context, q *question) (*call, error) {
	timeout := time.NewTimer(holdTimeout)
	defer timeout.Stop()
	for {
		e := s.elect(q)
		switch {
		case e.winner != nil:
			return e.winner, nil
		case e.strayed:
			return nil, s.doubt(q)
		case e.left == 0:
			return nil, wire.Errorf(spec.CodeInvalidRequest, "%s: the calls that the question could belong to have ended", q.m.Method)
		}
		select {
		case <-e.changed:
		case <-timeout.C:
			s.drop("ambiguous question")
			s.log.Warn("question refused: it may belong to several calls", "method", q.m.Method, "calls", e.left)
			return nil, wire.Errorf(spec.CodeInternal, "%s: %d calls are under way and nothing tells which one asks; run them one at a time", q.m.Method, e.left)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// An election is a look at the candidates of a question.
type election struct {
	winner  *call // parked; nil if there is no single candidate
	left    int
	strayed bool            // one was cancelled: its server may have asked before it knew
	changed <-chan struct{} // closed when the outcome may be another
}

func (s *session) elect(q *question) election {
	s.mu.Lock()
	defer s.mu.Unlock()
	var e election
	var last *call
	for _, c := range q.candidates {
		switch {
		case c.hasStrayed():
			e.strayed = true
		case c.mayHaveAsked(q.came):
			e.left++
			last = c
		}
	}
	switch {
	case e.strayed:
	case e.left == 1:
		e.winner = last
		s.assignLocked(q, last)
	default:
		e.changed = s.calls.changes()
	}
	return e
}

// assignLocked parks the call that a question belongs to, if its caller is going
// to be asked. The caller of a call that runs may be asked for its roots, and who
// waits for them is not known.
func (s *session) assignLocked(q *question, c *call) {
	isRoots := q.m.Method == spec.MethodRootsList
	q.waits = q.told || !isRoots
	switch {
	case !c.mayBeAsked: // it is about roots, and c one that they were another client's for
	case mcp.MissingCapability(c.capabilities(), q.m.Method, q.m.Params) != nil:
	case isRoots && s.opts.Roots != nil:
	case c.park(q.waits, q.came):
		q.parked, q.asked = true, c
		s.calls.change()
	}
}

// breathe frees the lane of a call that was asked a question, at once or when its
// server has had the time to ask all it has to ask on the same breath. An answer
// before that lets the call keep it: stop is called then.
func (c *call) breathe(q *question) (stop func() bool) {
	if q.told {
		c.freeLane()
		return func() bool { return false }
	}
	return time.AfterFunc(breath-time.Since(q.came), c.freeLane).Stop
}

func (s *session) unpark(q *question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unparkLocked(q)
}

// unparkLocked marks the call of a question as running, once.
func (s *session) unparkLocked(q *question) {
	if q.asked != nil {
		q.asked.unpark(q.waits)
		q.asked = nil
		s.calls.change()
	}
}
