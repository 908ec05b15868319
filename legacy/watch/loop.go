package watch

import (
	"context"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

// A watch keeps what one profile is subscribed to upstream equal to what the
// index says is wanted. One loop owns all of it and never waits for anything but
// news; calls and dials run beside it and report back. Nobody tells the loop
// what to do, only that it is time to look again: so it does not matter in which
// order news come.
type Watch struct {
	// Set by newWatch, read-only after.
	table   *Watches
	opts    *Options
	profile mcp.Profile
	born    time.Time // what the clock of durations counts from

	// How others reach the loop.
	poked   chan struct{} // capacity 1
	pokes   pokes
	reports chan callReport // capacity maxCalls: a worker never blocks
	dials   chan dialReport // capacity 1: there is one dial at a time
	workers sync.WaitGroup  // calls and the dial

	// mu guards the maps and the fields of their topics that say so, against
	// sessions that call changed. Only the loop writes them, so it reads without.
	// It is a leaf: nothing is called while it is held.
	mu    sync.Mutex
	uris  map[string]*tracked
	lists map[fanout.Kind]*tracked

	// The loop's own.
	waiting []*subscribe.Query // not yet answered, oldest first
	agenda  agenda
	callState
	sessionState
}

// pokes is what the loop is to look at next. mu is a leaf, held for the fields
// alone.
type pokes struct {
	mu      sync.Mutex
	dropped []*subscribe.Query // their callers have lost interest
	gap     bool               // messages may have been missed
	channel bool               // the way for messages has opened or closed
}

func newWatch(ws *Watches, p mcp.Profile) *Watch {
	w := &Watch{
		table:   ws,
		opts:    &ws.opts,
		profile: p,
		born:    time.Now(),
		poked:   make(chan struct{}, 1),
		dials:   make(chan dialReport, 1),
		uris:    make(map[string]*tracked),
		lists:   make(map[fanout.Kind]*tracked),
	}
	w.reports = make(chan callReport, w.maxCalls())
	return w
}

// now is the time on the watch's clock. It is never 0, which means "not set".
func (w *Watch) now() time.Duration { return time.Since(w.born) + 1 }

// Run implements [subscribe.Loop]. It ends when nothing is tracked any more, or with ctx.
func (w *Watch) Run(ctx context.Context, first *subscribe.Query, more <-chan *subscribe.Query) {
	ctx, stop := context.WithCancel(ctx)
	defer w.end(ctx, stop)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	w.admit(first)
	for {
		w.pump(ctx)
		if w.empty() && w.out == 0 && !w.dialing {
			return
		}
		timer.Reset(w.nextWake())
		select {
		case <-ctx.Done():
			return
		case q := <-more:
			w.admit(q)
		case <-w.poked:
			w.lookAround()
		case r := <-w.reports:
			w.reported(r)
		case d := <-w.dials:
			w.dialed(d)
		case <-w.lost:
			w.sessionLost()
		case <-timer.C:
			w.tick()
		}
	}
}

// end joins what the loop started and lets go of the session. Who waits is told
// why.
func (w *Watch) end(ctx context.Context, stop context.CancelFunc) {
	stop()
	w.workers.Wait()
	select {
	case d := <-w.dials:
		w.letGo(d)
	default:
	}
	for _, q := range w.waiting {
		q.Finish(context.Cause(ctx))
	}
	if w.release != nil {
		w.release()
	}
}

// poke wakes the loop. It never blocks.
func (w *Watch) poke() {
	select {
	case w.poked <- struct{}{}:
	default: // it will look anyway
	}
}

// gap says that messages of the profile may have been missed, and that there is
// a way for them again (M2L-37).
func (w *Watch) Gap() {
	if w == nil {
		return
	}
	w.pokes.mu.Lock()
	w.pokes.gap = true
	w.pokes.mu.Unlock()
	w.poke()
}

// channel says that the way for messages has opened or closed. What is true at
// the time that the loop looks is what the session says then.
func (w *Watch) Channel(bool) {
	if w == nil {
		return
	}
	w.pokes.mu.Lock()
	w.pokes.channel = true
	w.pokes.mu.Unlock()
	w.poke()
}

// lookAround looks at what it was poked about.
func (w *Watch) lookAround() {
	w.pokes.mu.Lock()
	dropped, gap, channel := w.pokes.dropped, w.pokes.gap, w.pokes.channel
	w.pokes.dropped, w.pokes.gap, w.pokes.channel = nil, false, false
	w.pokes.mu.Unlock()

	if channel {
		gap = w.refreshOffers() || gap
	}
	if gap {
		w.makeUp()
	}
	for _, q := range dropped {
		if !q.Closed() {
			w.strip(q)
		}
		w.fade(q)
	}
}

// tick does what is due.
func (w *Watch) tick() {
	now := w.now()
	w.expire(now)
	for e := w.agenda.pop(now); e != nil; e = w.agenda.pop(now) {
		e.due = 0
		if e.fading && w.opts.Changes.Wanted(e.topic) {
			w.setFading(e, false)
		}
		w.look(e)
	}
	w.slowCalls(now)
	w.sessionTick(now)
}

// nextWake is how long the loop may sleep.
func (w *Watch) nextWake() time.Duration {
	at := earliest(w.agenda.next(), w.nextSlow(), w.nextSession())
	if len(w.waiting) > 0 {
		at = earliest(at, w.waiting[0].Until)
	}
	if at == 0 {
		return time.Hour
	}
	return max(at-w.now(), 0)
}

// earliest returns the least of the times that are set.
func earliest(times ...time.Duration) time.Duration {
	var out time.Duration
	for _, t := range times {
		if t != 0 && (out == 0 || t < out) {
			out = t
		}
	}
	return out
}
