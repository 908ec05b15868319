package watch

import (
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// A leg is a topic at one member. It is used by the loop of its watch only.
type leg struct {
	t  *topic
	at *link

	phase phase
	due   time.Duration // of one that rests
	tries int           // refusals in a row
	late  bool          // the topic was accepted without it: changes may have been missed
	told  bool          // subscribers were told that it is refused
	had   bool          // the member has told of it
	later bool          // its last answer is that it may tell of it later
	gone  bool          // the member gave it up before its answer was heard
}

// phase says what a leg is at.
type phase uint8

const (
	legIdle    phase = iota // it is not needed
	legQueued               // it is in the queue of its link
	legAsked                // the member is being asked
	legHeld                 // the member tells its changes
	legRefused              // the member has said that it does not
	legResting              // as refused, until it is due: the member told of it before, or may later
)

// leg returns the one of a link, or nil.
func (s *state) leg(of *link) *leg {
	for _, g := range s.legs {
		if g.at == of {
			return g
		}
	}
	return nil
}

// count returns how many members tell of a topic, may still answer, and can't be reached.
func (s *state) count() (holding, open, away int) {
	for _, g := range s.legs {
		switch {
		case g.phase == legHeld:
			holding++
		case !g.phase.isOpen():
		case g.at.failing:
			away++
		default:
			open++
		}
	}
	return holding, open, away
}

// to changes the phase of a leg.
func (g *leg) to(p phase) {
	if g.phase.isOpen() {
		g.at.open--
	}
	if g.phase = p; p.isOpen() {
		g.at.open++
	}
}

// isOpen reports whether the member is asked, or will be soon.
func (p phase) isOpen() bool { return p == legQueued || p == legAsked }

// leave has the member not followed for the topic, unless it is being asked.
func (g *leg) leave() {
	switch g.phase {
	case legAsked:
		return
	case legHeld:
		g.at.now.sub.Unfollow(g.at.now.topic(g.t))
	}
	g.to(legIdle)
}

// lose says that the member tells no more of the topic, and has it asked again.
func (g *leg) lose() {
	g.late = g.late || g.t.Promised()
	g.at.enqueue(g)
}

// giveUp says that the member has given up the topic: an answer that it tells of it is older.
func (g *leg) giveUp() {
	switch g.phase {
	case legHeld:
		g.lose()
	case legAsked:
		g.gone = true
	}
}

// isList reports whether a topic is a list.
func isList(t *topic) bool {
	return t.Kind != fanout.ResourceUpdated && t.Kind != fanout.StateLost
}

// answered handles what a member has said of a leg, on the loop.
func (w *watch) answered(of *contact, g *leg, takes bool, err error) {
	of.asked--
	if l := of.link; l.now == of && g.phase == legAsked {
		g.later = errors.Is(err, mcp.ErrNotNow)
		switch {
		case g.later:
			l.reached()
			w.postpone(g)
		case err != nil:
			w.failed(l, err)
			l.enqueue(g)
		case takes && g.gone:
			l.reached()
			g.lose()
		case takes:
			l.reached()
			w.taken(g)
		default:
			l.reached()
			w.refuse(g)
		}
		w.tellLoss(l)
	}
	w.decide(g.t)
	w.Look(g.t)
}

// taken says that the member tells of the topic from now on.
func (w *watch) taken(g *leg) {
	late, had := g.late && g.t.Promised(), g.had
	g.to(legHeld)
	g.late, g.told, g.had, g.tries = false, false, true, 0
	switch {
	case !late:
	case g.t.Kind != fanout.StateLost:
		w.book.Tell(g.t)
	case had:
		g.at.owes = true
	}
}

// refuse says that the member does not tell of the topic. A list may have changed all the same,
// since the member was away. A resource is asked for again if nobody tells of it any more.
func (w *watch) refuse(g *leg) {
	late, had, t := g.late && g.t.Promised(), g.had, g.t
	g.to(legRefused)
	g.had = false
	switch {
	case isList(t):
		if g.late = false; late {
			w.book.Tell(t)
		}
	case t.Kind == fanout.StateLost:
		g.late = false
		g.at.owes = g.at.owes || late && had
	case t.Promised():
		if late && !g.told {
			w.book.Tell(t)
		}
		g.told = true
		w.rest(t)
	}
}

// rest has an accepted resource asked for again that no member tells of.
func (w *watch) rest(t *topic) {
	if holding, open, away := t.State.count(); holding+open+away > 0 {
		return
	}
	for _, g := range t.State.legs {
		if g.phase == legRefused {
			w.postpone(g)
		}
	}
}

// postpone has a member asked again after a pause that grows.
func (w *watch) postpone(g *leg) {
	g.to(legResting)
	g.due = w.book.Now() + wake.Jitter(refusedAgain.After(g.tries))
	g.tries = min(g.tries+1, 32)
}
