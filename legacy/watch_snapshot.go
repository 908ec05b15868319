package legacy

import (
	"cmp"
	"context"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// A WatchSnapshot is what one profile is subscribed to upstream, at a moment.
type WatchSnapshot struct {
	Scope   string // of the profile
	Session bool   // whether there is a session
	Calls   int    // subscribe and unsubscribe calls on their way
	Topics  []TopicSnapshot
}

// A TopicSnapshot is one topic of a [WatchSnapshot].
type TopicSnapshot struct {
	Topic fanout.Topic
	// State is "waiting" (for a session, its turn, or the next try), "asking",
	// "subscribed", "lingering" (nobody wants it, the upstream has not been
	// told), "ending", or "lost" (acknowledged, to be subscribed again).
	State string
}

// snapshot lists the watches of the upstream, by scope. ctx bounds the wait.
func (ws *watches) snapshot(ctx context.Context) []WatchSnapshot {
	var out []WatchSnapshot
	for _, l := range ws.Loops() {
		c := make(chan WatchSnapshot, 1)
		select {
		case l.Loop.snapshots <- c:
			out = append(out, <-c) // the loop answers at once
		case <-l.Done:
		case <-ctx.Done():
			return out
		}
	}
	slices.SortFunc(out, func(a, b WatchSnapshot) int { return cmp.Compare(a.Scope, b.Scope) })
	return out
}

func (w *watch) snapshot() WatchSnapshot {
	out := WatchSnapshot{
		Scope:   w.profile.Scope,
		Session: w.session != nil,
		Calls:   w.out,
		Topics:  make([]TopicSnapshot, 0, len(w.uris)+len(w.lists)),
	}
	for e := range w.all() {
		out.Topics = append(out.Topics, TopicSnapshot{e.topic, w.state(e)})
	}
	slices.SortFunc(out.Topics, func(a, b TopicSnapshot) int {
		return cmp.Or(cmp.Compare(a.Topic.Kind, b.Topic.Kind), cmp.Compare(a.Topic.URI, b.Topic.URI))
	})
	return out
}

// state names what a topic is at.
func (w *watch) state(e *tracked) string {
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
