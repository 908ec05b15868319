package watch

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// askedAgain are the pauses before a member is asked again that could not be, and refusedAgain
// those before it is asked again for what it had accepted, or may accept later.
var (
	askedAgain   = wake.Backoff{Min: 100 * time.Millisecond, Max: 15 * time.Second}
	refusedAgain = wake.Backoff{Min: time.Second, Max: 5 * time.Minute}
)

// awaitedPause is the longest pause while a subscriber waits.
const awaitedPause = time.Second

type (
	book  = subscribe.Book[state]
	topic = subscribe.Topic[state]
)

// A watch has what one profile of a group follows followed at the members. It is the
// [subscribe.Driver] of the profile's book. A topic is that of one or more members: a list is of
// all, a resource of those that may have it. Nothing that a member does ends it.
type watch struct {
	all     *Watches
	profile mcp.Profile
	book    *book

	// For the one goroutine that reads what all members tell.
	ready wake.Signal
	open  atomic.Pointer[[]*contact] // those that are read

	// mu guards lost, which the loop takes. It is a leaf.
	mu   sync.Mutex
	lost []lostTopic

	// Used by the loop only.
	view    *View   // the one by which links are
	links   []*link // of all members, in the group's order
	looks   int64   // of the Watches, when the loop last looked
	reading bool
}

// A lostTopic is one that a member has given up.
type lostTopic struct {
	of    *contact
	topic fanout.Topic
}

// state is a watch's state of a topic.
type state struct {
	legs  []*leg
	known bool          // the legs are those of members that have the resource
	by    time.Duration // when those who wait are answered
}

func newWatch(all *Watches, b *book, p mcp.Profile) *watch {
	w := &watch{all: all, profile: p, book: b, ready: wake.NewSignal(), view: all.view.Load(), looks: all.looks.Load()}
	w.open.Store(new([]*contact))
	for _, name := range w.view.Members {
		w.links = append(w.links, &link{name: name})
	}
	return w
}

// Serve implements [subscribe.Driver].
func (w *watch) Serve(ts []*topic) {
	w.renew()
	for _, t := range ts {
		w.spread(t)
		w.decide(t)
	}
}

// spread has a topic followed at all members that it is of.
func (w *watch) spread(t *topic) {
	r, at := w.routeOf(t), w.links
	if t.Kind == fanout.ResourceUpdated {
		at, t.State.known = w.linksTo(r.Members), r.Known
	}
	patience := min(w.view.Patience, subscribe.Patience*9/10)
	if !r.By.IsZero() {
		patience = min(patience, time.Until(r.By))
	}
	t.State.by = w.book.Now() + patience
	for _, l := range at {
		g := t.State.leg(l)
		if g == nil {
			g = &leg{t: t, at: l, late: t.Promised()}
			t.State.legs = append(t.State.legs, g)
		}
		if g.phase == legIdle || g.phase == legResting {
			l.enqueue(g)
		}
		l.due = min(l.due, l.tried+awaitedPause)
	}
}

// routeOf returns the route of a topic: the one that was found for its subscriber, or else, of a
// resource, what is known now.
func (w *watch) routeOf(t *topic) *Route {
	if r := w.all.routes.get(t.Topic); r != nil {
		return r
	}
	if t.Kind != fanout.ResourceUpdated {
		return new(Route)
	}
	holders := w.view.Holders(&w.profile, t.URI)
	return &Route{Members: holders, Known: len(holders) > 0}
}

// linksTo returns the links of members; of all if there are none.
func (w *watch) linksTo(members []string) []*link {
	if len(members) == 0 {
		return w.links
	}
	return slices.DeleteFunc(slices.Clone(w.links), func(l *link) bool { return !slices.Contains(members, l.name) })
}

// decide answers those who wait for a topic, if its members have answered or their time is over.
// A list is accepted in any case: what it misses is told later. So is a resource of a member that
// is away.
func (w *watch) decide(t *topic) {
	if !t.Awaited() {
		return
	}
	held, open, away := t.State.count()
	late := w.book.Now() >= t.State.by
	always := t.Kind != fanout.ResourceUpdated
	switch known := t.State.known || t.Promised(); {
	case t.Promised() && (always || held > 0):
		w.grant(t)
	case open > 0 && !late: // Look is called by then
	case always, held > 0, known && open+away > 0:
		w.grant(t)
	case slices.ContainsFunc(t.State.legs, func(g *leg) bool { return g.later }):
		t.PutOff()
	default:
		t.Settle(false)
	}
	w.Look(t)
}

// grant accepts a topic. What members tell it of later may have been missed.
func (w *watch) grant(t *topic) {
	for _, g := range t.State.legs {
		g.late = g.phase != legHeld
	}
	w.book.Grant(t, false)
}

// Look implements [subscribe.Driver].
func (w *watch) Look(t *topic) {
	if !w.book.Tracks(t) {
		return
	}
	now := w.book.Now()
	if t.Awaited() && t.State.by <= now {
		w.decide(t)
		return
	}
	if !t.Needed() {
		w.leave(t)
		return
	}
	var due time.Duration
	if t.Awaited() {
		due = t.State.by
	}
	for _, g := range t.State.legs {
		if g.phase == legResting && g.due <= now {
			g.at.enqueue(g)
		} else if g.phase == legResting {
			due = subscribe.Earliest(due, g.due)
		}
	}
	w.book.At(t, due)
}

// leave has no member followed for a topic that nobody needs, and forgets it when all questions
// about it are answered.
func (w *watch) leave(t *topic) {
	asking := false
	for _, g := range t.State.legs {
		asking = asking || g.phase == legAsked
		g.leave()
	}
	if !asking {
		w.book.Forget(t)
	}
}

// Pump implements [subscribe.Driver].
func (w *watch) Pump(ctx context.Context) {
	w.renew()
	w.takeLost()
	for _, l := range w.links {
		w.pump(ctx, l)
	}
}

// Wake implements [subscribe.Driver].
func (w *watch) Wake() (at time.Duration) {
	for _, l := range w.links {
		if len(l.queue) > 0 && l.due > w.book.Now() {
			at = subscribe.Earliest(at, l.due)
		}
	}
	return at
}

// Busy implements [subscribe.Driver]: what is not needed ends with the loop.
func (w *watch) Busy() bool { return false }

// Away implements [subscribe.Driver]: a group is always there.
func (w *watch) Away() error { return nil }

// Starting implements [subscribe.Driver].
func (w *watch) Starting() bool { return false }

// Close implements [subscribe.Driver].
func (w *watch) Close() {
	for _, l := range w.links {
		w.hangUp(l)
	}
}

// renew follows the members that the group has now, and looks again for those that were away.
func (w *watch) renew() {
	if v := w.all.view.Load(); v != w.view {
		w.adopt(v)
	}
	if looks := w.all.looks.Load(); looks != w.looks {
		w.looks = looks
		for _, l := range w.links {
			l.due = 0
		}
	}
}

// adopt follows other members than before. Lists have changed then, and what nobody is known to
// have any more.
func (w *watch) adopt(v *View) {
	w.view = v
	former := w.links
	w.links = nil
	for _, name := range v.Members {
		at := slices.IndexFunc(former, func(l *link) bool { return l.name == name })
		if at < 0 {
			w.links = append(w.links, &link{name: name})
		} else {
			w.links = append(w.links, former[at])
		}
	}
	for _, l := range former {
		if !slices.Contains(w.links, l) {
			w.hangUp(l)
		}
	}
	for t := range w.book.All() {
		w.adoptTopic(t)
	}
}

func (w *watch) adoptTopic(t *topic) {
	before := len(t.State.legs)
	t.State.legs = slices.DeleteFunc(t.State.legs, func(g *leg) bool {
		gone := !slices.Contains(w.links, g.at)
		if gone {
			g.to(legIdle)
		}
		return gone
	})
	isResource, fewer := t.Kind == fanout.ResourceUpdated, len(t.State.legs) < before
	if !t.Needed() {
		w.Look(t)
		return
	}
	if holding, _, _ := t.State.count(); !isResource || holding == 0 {
		w.spread(t)
	}
	if t.Promised() && t.Kind != fanout.StateLost && (fewer || !isResource) {
		w.book.Tell(t)
		for _, g := range t.State.legs {
			g.told = g.phase != legHeld
		}
	}
	w.decide(t)
}
