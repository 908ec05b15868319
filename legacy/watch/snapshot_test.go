package watch

import (
	"cmp"
	"slices"
	"testing/synctest"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// A watchSnapshot is what one profile is subscribed to upstream, at a moment.
type watchSnapshot struct {
	Scope   string // of the profile
	Session bool   // whether there is a session
	Calls   int    // subscribe and unsubscribe calls on their way
	Topics  []topicSnapshot
}

// A topicSnapshot is one topic of a watchSnapshot.
type topicSnapshot struct {
	Topic fanout.Topic
	// State is "waiting" (for a session, its turn, or the next try), "asking",
	// "subscribed", "lingering" (nobody wants it, the upstream has not been
	// told), "ending", or "lost" (acknowledged, to be subscribed again).
	State string
}

// snapshot lists the watches of the upstream, by scope, once nothing moves any more.
func (ws *Watches) snapshot() []watchSnapshot {
	synctest.Wait()
	var out []watchSnapshot
	for _, l := range ws.Loops() {
		out = append(out, l.Loop.snapshot())
		// What the loop does when a timer wakes it comes after this reading. The race
		// detector has to be shown that.
		l.Loop.poke()
	}
	slices.SortFunc(out, func(a, b watchSnapshot) int { return cmp.Compare(a.Scope, b.Scope) })
	return out
}

func (w *Watch) snapshot() watchSnapshot {
	out := watchSnapshot{
		Scope:   w.profile.Scope,
		Session: w.session != nil,
		Calls:   w.out,
		Topics:  make([]topicSnapshot, 0, len(w.uris)+len(w.lists)),
	}
	for e := range w.all() {
		out.Topics = append(out.Topics, topicSnapshot{e.topic, w.state(e)})
	}
	slices.SortFunc(out.Topics, func(a, b topicSnapshot) int {
		return cmp.Or(cmp.Compare(a.Topic.Kind, b.Topic.Kind), cmp.Compare(a.Topic.URI, b.Topic.URI))
	})
	return out
}

// state names what a topic is at.
func (w *Watch) state(e *tracked) string {
	switch {
	case e.phase == phCalling && e.asking:
		return "asking"
	case e.phase == phCalling:
		return "ending"
	case e.standing == stOn && e.fading:
		return "lingering"
	case e.standing == stOn:
		return "subscribed"
	case e.acked:
		return "lost"
	}
	return "waiting"
}
