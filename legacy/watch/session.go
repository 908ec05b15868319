package watch

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

// A Session is what a watch needs of the profile's session. Methods are safe for
// concurrent use.
type Session interface {
	// Subscribe sends resources/subscribe and waits for the answer. It returns a
	// *wire.Error if the server refused, and any other error if the outcome is
	// not known.
	Subscribe(ctx context.Context, uri string) error
	// Unsubscribe is the same for resources/unsubscribe.
	Unsubscribe(ctx context.Context, uri string) error
	// WatchList has the session look for changes of a list, for those that Offers
	// says are looked at. It fails as Subscribe does.
	WatchList(ctx context.Context, k fanout.Kind) error
	// UnwatchList undoes it.
	UnwatchList(k fanout.Kind)
	// Offers tells what the server declared and whether it could tell of changes
	// at this moment. What it says of the channel is so before the watch is told.
	Offers() Offers
	// Done is closed when the session is lost or ended. Calls end then, too.
	Done() <-chan struct{}
}

// Offers is what changes a session can report.
type Offers struct {
	Tools, Prompts, Resources bool // listChanged was declared
	Subscribe                 bool // resources.subscribe was declared
	// Channel: a way for messages that answer nothing is open. Over stdio it
	// always is, over HTTP it is the GET stream.
	Channel bool
	Polls   Kinds // of whose changes the gateway finds out by itself
}

// List reports whether changes of a list can be reported, once there is a channel.
func (o Offers) List(k fanout.Kind) bool {
	switch k {
	case fanout.ToolsListChanged:
		return o.Tools
	case fanout.PromptsListChanged:
		return o.Prompts
	case fanout.ResourcesListChanged:
		return o.Resources
	}
	return false
}

// Kinds is a set of kinds of change.
type Kinds uint8

// Has reports whether a kind is in the set.
func (ks Kinds) Has(k fanout.Kind) bool { return ks&(1<<k) != 0 }

// With returns the set with a kind.
func (ks Kinds) With(k fanout.Kind) Kinds { return ks | 1<<k }

// sessionState is what the loop knows of the profile's session.
type sessionState struct {
	session   Session // nil while there is none
	release   func()  // lets go of session; nil without
	offers    Offers
	epoch     int           // counts sessions
	heldSince time.Duration // when session was got
	late      bool          // session came without a channel, and has none yet

	dialing     bool
	hangUp      context.CancelFunc // ends the dial
	failures    int                // dials in a row, or sessions that did not last
	redialAt    time.Duration      // no dial before; 0: at once
	awaySince   time.Duration      // when a session was lost; 0: none was
	silentSince time.Duration      // when the channel was lost; 0: there is one
	dialErr     error              // of the last dial

	// While a session is being restored, behind counts the promised topics that
	// are not subscribed again; it is given up at behindUntil.
	behind      int
	behindUntil time.Duration
}

// pumpDial starts a dial if a session is needed and it is time, and ends one that nobody
// needs.
func (w *Watch) pumpDial(ctx context.Context) {
	switch needed := w.book.Len() > 0; {
	case w.dialing && !needed:
		w.hangUp()
	case w.dialing, w.session != nil, !needed, w.book.Now() < w.redialAt:
	default:
		dial, cancel := context.WithCancel(ctx)
		w.dialing, w.hangUp = true, cancel
		// Ends when the session is there, by hangUp, or with the loop.
		w.book.Go(func() { w.dial(ctx, dial) })
	}
}

// dial gets a session; ctx is the loop's.
func (w *Watch) dial(ctx, dial context.Context) {
	s, release, err := w.opts.hold(dial, w.profile)
	hungUp := dial.Err() != nil
	if !w.book.Do(ctx, func() { w.dialed(s, release, err, hungUp) }) && err == nil {
		release()
	}
}

// dialed takes the outcome of a dial.
func (w *Watch) dialed(s Session, release func(), err error, hungUp bool) {
	w.dialing = false
	w.hangUp()
	switch needed := w.book.Len() > 0; {
	case err == nil && needed:
		w.restore(s, release)
	case err == nil:
		release()
	case hungUp: // somebody may need it again by now
	default:
		w.dialErr = err
		w.putOffDial()
		w.opts.Logger.Debug("no session for subscriptions", "err", err, "tries", w.failures)
		w.book.Unreached(err)
	}
}

// putOffDial has the next dial wait, longer with each in a row.
func (w *Watch) putOffDial() {
	w.redialAt = w.book.Now() + w.book.Pause(w.failures)
	w.failures++
}

// restore takes a session and begins to subscribe on it to all that is wanted.
func (w *Watch) restore(s Session, release func()) {
	w.session, w.release = s, release
	w.book.Await(s.Done(), w.lost)
	w.epoch++
	w.heldSince, w.awaySince, w.redialAt, w.dialErr = w.book.Now(), 0, 0, nil
	w.book.Reached()
	w.late = true
	w.refreshOffers(false)

	w.behind, w.behindUntil = 0, w.book.Now()+subscribe.Patience
	for t := range w.book.All() {
		if t.State.behind = t.Promised(); t.State.behind {
			w.behind++
		}
	}
	for t := range w.book.All() {
		w.serve(t)
	}
}

// lost forgets what the server knew. Streams stay open meanwhile.
func (w *Watch) lost() {
	if w.book.Now()-w.heldSince > w.opts.retry.Max {
		w.failures = 0
	}
	w.putOffDial()
	w.awaySince = w.book.Now()
	w.release()
	w.session, w.release, w.offers, w.silentSince = nil, nil, Offers{}, 0
	w.epoch++ // the outcome of its calls, which end by themselves, says nothing any more
	w.emptyQueue()
	w.behind = 0
	for t := range w.book.All() {
		t.State.standing, t.State.behind = off, false
		t.Missed = t.Missed || t.Promised()
		w.Look(t)
	}
	if n := w.book.Len(); n > 0 {
		w.opts.Logger.Warn("session lost, its subscriptions will be made again", "topics", n)
	}
}

// refreshOffers asks the session what is true at the moment, and tells of what may have
// been missed: with gap something may, and so may messages that the server sent before the
// session's channel opened for the first time.
func (w *Watch) refreshOffers(gap bool) {
	if w.session == nil {
		return
	}
	w.offers = w.session.Offers()
	if !w.offers.Channel {
		w.silentSince = subscribe.Earliest(w.silentSince, w.book.Now())
	} else {
		gap = gap || w.late && w.silentSince != 0
		w.late, w.silentSince = false, 0
	}
	if gap {
		w.missed()
	}
}

// restored notes that the restoration need not wait for t any longer. The last one ends
// it.
func (w *Watch) restored(t *topic) {
	if !t.State.behind {
		return
	}
	t.State.behind = false
	if w.behind--; w.behind == 0 {
		w.endRestoration()
	}
}

// endRestoration tells of what may have been missed. Topics that are still not subscribed
// follow one by one.
func (w *Watch) endRestoration() {
	w.behind = 0
	for t := range w.book.All() {
		t.State.behind = false
		w.tellMissed(t)
	}
}

// sessionTick does what is due about the session.
func (w *Watch) sessionTick() {
	now := w.book.Now()
	if w.behind > 0 && w.behindUntil <= now {
		w.endRestoration()
	}
	if w.awaySince != 0 && w.awaySince+w.opts.unreachable <= now {
		w.awaySince = 0
		away := w.Away()
		w.book.FailWaiting(away)
		w.giveUp(func(*topic) bool { return true },
			fmt.Errorf("unreachable for %v: %v", w.opts.unreachable, away))
	}
	if w.silentSince != 0 && w.silentSince+w.opts.unreachable <= now {
		w.silentSince = now // in case something is promised meanwhile
		w.giveUp(w.fromServer, errNoChannel)
	}
}

// nextSession returns when there is something to do about the session.
func (w *Watch) nextSession() time.Duration {
	var behind, away, silent, dial time.Duration
	if w.behind > 0 {
		behind = w.behindUntil
	}
	if w.awaySince != 0 {
		away = w.awaySince + w.opts.unreachable
	}
	if w.silentSince != 0 {
		silent = w.silentSince + w.opts.unreachable
	}
	if w.session == nil && !w.dialing {
		dial = w.redialAt
	}
	return subscribe.Earliest(behind, away, silent, dial)
}

// giveUp ends the streams of the promised topics that which picks (M2L-38).
func (w *Watch) giveUp(which func(*topic) bool, reason error) {
	for t := range w.book.All() {
		if t.Promised() && which(t) {
			w.deny(t, reason)
		}
	}
}
