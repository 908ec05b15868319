package watch

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// maxAsked bounds the topics that one member is asked for at a time, for one profile.
const maxAsked = 256

// A link is what a watch has with one member. It is used by the watch's loop only.
type link struct {
	name     string
	now      *contact      // nil while there is none
	queue    []*leg        // in phase queued, and others that are skipped
	open     int           // legs in an open phase
	failing  bool          // the member could not be asked
	failures int           // in a row
	due      time.Duration // when it is asked next
	tried    time.Duration // when it was asked last
	owes     bool          // the loss of its session is to be told, when all has been asked again
}

// A contact is a subscription at a member. Only the loop uses the fields below sub.
type contact struct {
	link  *link
	scope string // of the member's profile
	mail  *fanout.Mailbox
	sub   Following

	asked int
	since time.Duration
}

// topic returns a topic as the member has it.
func (f *contact) topic(t *topic) fanout.Topic {
	return fanout.Topic{Scope: f.scope, Kind: t.Kind, URI: t.URI}
}

// enqueue has a leg asked.
func (l *link) enqueue(g *leg) {
	g.to(legQueued)
	l.queue = append(l.queue, g)
}

// dequeue returns the next leg that is to be asked; nil if there is none.
func (l *link) dequeue() *leg {
	for len(l.queue) > 0 {
		g := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		if g.phase == legQueued {
			return g
		}
	}
	l.queue = nil
	return nil
}

// reached says that the member has answered.
func (l *link) reached() { l.failing, l.failures, l.due = false, 0, 0 }

// failed says that a member can't be asked. It is asked again after a pause.
func (w *watch) failed(l *link, err error) {
	l.failing = true
	if now := w.book.Now(); l.due <= now {
		l.due = now + w.book.Pause(l.failures)
		l.failures++
		w.all.opts.Logger.Debug("member can't be followed", "upstream", w.all.opts.Name, "member", l.name, "err", err, "tries", l.failures)
	}
}

// pump asks a member for the topics that are in its queue.
func (w *watch) pump(ctx context.Context, l *link) {
	if len(l.queue) == 0 || w.book.Now() < l.due {
		return
	}
	if l.now == nil {
		if err := w.dial(ctx, l); err != nil {
			w.failed(l, err)
			for _, g := range slices.Clone(l.queue) {
				w.decide(g.t)
			}
			return
		}
	}
	for l.now.asked < maxAsked {
		g := l.dequeue()
		if g == nil {
			return
		}
		w.ask(ctx, g)
	}
}

// dial subscribes at a member, without topics.
func (w *watch) dial(ctx context.Context, l *link) error {
	l.tried = w.book.Now()
	m, err := w.view.Find(l.name)
	if err != nil {
		return err
	}
	p := m.Profile(w.profile)
	f := &contact{link: l, scope: p.Scope, mail: fanout.NewMailbox(fanout.MailboxOptions{Ready: w.ready}), since: w.book.Now()}
	w.listenTo(append(slices.Clone(*w.open.Load()), f)) // before anything is put into mail
	f.sub, err = m.Subscribe(p, f.mail, func(t fanout.Topic, _ error) { w.noteLost(f, t) })
	if err != nil {
		w.listenTo(without(*w.open.Load(), f))
		return err
	}
	l.now = f
	if !w.reading {
		w.reading = true
		w.book.Go(func() { w.read(ctx) }) // ends with the loop
	}
	return nil
}

func (w *watch) listenTo(all []*contact) { w.open.Store(&all) }

func without(all []*contact, f *contact) []*contact {
	return slices.DeleteFunc(slices.Clone(all), func(other *contact) bool { return other == f })
}

// ask asks a member for a topic. What restores an accepted one is not charged to its share.
func (w *watch) ask(ctx context.Context, g *leg) {
	f, t := g.at.now, g.t
	g.to(legAsked)
	g.gone = false
	f.asked++
	g.at.tried = w.book.Now()
	share, of := t.Share(), f.topic(t)
	share.Charged = share.Charged || t.Promised()
	if !t.Promised() {
		w.book.Ask(t)
	}
	// Ends with the member's answer, or with the loop.
	w.book.Go(func() {
		takes, err := f.sub.Follow(ctx, share, of)
		w.book.Do(ctx, func() { w.answered(f, g, takes, err) })
	})
}

// hangUp ends the subscription at a member.
func (w *watch) hangUp(l *link) {
	f := l.now
	if f == nil {
		return
	}
	l.now = nil
	w.listenTo(without(*w.open.Load(), f))
	f.sub.Close()
}

// read passes on what members tell, until ctx ends.
func (w *watch) read(ctx context.Context) {
	for {
		select {
		case <-w.ready:
		case <-ctx.Done():
			return
		}
		for _, f := range *w.open.Load() {
			w.drain(ctx, f)
		}
	}
}

// drain passes on what one member tells. The loop handles what is about the member itself.
func (w *watch) drain(ctx context.Context, f *contact) {
	for ev, ok := f.mail.Next(); ok; ev, ok = f.mail.Next() {
		switch {
		case ev.IsMessage(), ev.URI == fanout.LeftOut:
			w.passMessage(f.link.name, ev)
			continue
		case ev.Topic.Kind == fanout.StateLost:
			w.book.Do(ctx, func() { w.rebuilt(f) })
			continue
		}
		if told := w.all.opts.HandedOut; told != nil && ev.URI != "" && ev.URI != ev.Topic.URI {
			told(&w.profile, f.link.name, ev.URI)
		}
		ev.Topic.Scope = w.profile.Scope
		w.book.HearOf(ev)
	}
	if reason, ended := f.mail.Ended(); ended {
		w.book.Do(ctx, func() { w.ended(f, reason) })
	}
}

// passMessage passes on a log message that a member has sent outside of calls, or that some were
// left out.
func (w *watch) passMessage(member string, ev fanout.Event) {
	ev.Topic.Scope = w.profile.Scope
	if logged := w.all.opts.Logged; logged != nil && ev.IsMessage() {
		ev.Meta = logged(member, ev.Meta)
	}
	w.all.opts.Changes.Publish(ev)
}

// ended handles the end of a subscription: the member was replaced, or is served no more. It is
// looked for at once, and what it told of is asked for again.
func (w *watch) ended(f *contact, reason error) {
	l := f.link
	if l.now != f {
		return
	}
	w.hangUp(l)
	now := w.book.Now()
	if now-f.since > askedAgain.Max {
		l.failures = 0
	}
	l.due = now
	if l.failures > 0 {
		l.due = now + w.book.Pause(l.failures)
	}
	l.failures++
	w.all.opts.Logger.Debug("member's subscriptions have ended, they will be made again", "upstream", w.all.opts.Name, "member", l.name, "reason", reason)
	for t := range w.book.All() {
		if g := t.State.leg(l); g != nil && g.phase != legIdle && g.phase != legQueued {
			g.lose()
		}
	}
}

// noteLost notes that a member has given up a topic, by any goroutine.
func (w *watch) noteLost(f *contact, t fanout.Topic) {
	w.mu.Lock()
	w.lost = append(w.lost, lostTopic{f, t})
	w.mu.Unlock()
	w.book.Poke()
}

// takeLost has topics asked for again that members have given up: they could not be reached for
// long, or refuse what they had accepted.
func (w *watch) takeLost() {
	w.mu.Lock()
	lost := w.lost
	w.lost = nil
	w.mu.Unlock()
	if len(lost) == 0 {
		return
	}
	gone := make(map[lostTopic]bool, len(lost))
	for _, of := range lost {
		gone[of] = true
	}
	for t := range w.book.All() {
		for _, g := range t.State.legs {
			if f := g.at.now; f != nil && gone[lostTopic{f, f.topic(t)}] {
				g.giveUp()
			}
		}
	}
}

// rebuilt handles that a member has lost the session of the profile, and has another one. It has
// told of all that may have changed by now, but for the lists that it does not tell of: these may
// have changed as well.
func (w *watch) rebuilt(f *contact) {
	l := f.link
	if l.now != f {
		return
	}
	for t := range w.book.All() {
		if g := t.State.leg(l); g != nil && g.phase == legRefused && isList(t) {
			g.lose()
		}
	}
	l.owes = true
	w.tellLoss(l)
}

// tellLoss tells that the session of a member was lost, once all of its topics have been asked
// for again, so that it comes after what else may have changed.
func (w *watch) tellLoss(l *link) {
	if !l.owes || l.open > 0 {
		return
	}
	l.owes = false
	for t := range w.book.All() {
		if t.Kind == fanout.StateLost && t.Promised() {
			w.all.opts.Changes.Publish(fanout.Event{Topic: t.Topic, URI: l.name})
		}
	}
}
