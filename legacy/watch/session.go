package watch

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

// A Session is the part of a profile's session that a watch needs. Its methods are safe for
// concurrent use.
type Session interface {
	// Subscribe sends resources/subscribe and waits for the response. It returns a
	// *wire.Error if the server refused, and any other error if the outcome is unknown.
	Subscribe(ctx context.Context, uri string) error
	// Unsubscribe does the same with resources/unsubscribe.
	Unsubscribe(ctx context.Context, uri string) error
	// WatchList polls a list, if Offers has it in Polls. It fails as Subscribe does.
	WatchList(ctx context.Context, k fanout.Kind) error
	// UnwatchList ends WatchList.
	UnwatchList(k fanout.Kind)
	// Offers returns what the server declared, and whether it can report changes at this
	// moment. Its Channel is up to date before ListenChanged is called.
	Offers() Offers
	// Done is closed when the session is lost or has ended. Calls end then, too.
	Done() <-chan struct{}
}

// Offers is what changes a session can report.
type Offers struct {
	Lists     mcp.Lists // listChanged was declared
	Subscribe bool      // resources.subscribe was declared
	// Channel: the server can send notifications. Over stdio it always can, over HTTP if
	// the GET stream is open.
	Channel   bool
	Reopening bool  // there is no channel, and may be one soon
	Polls     Kinds // the changes found by polling
}

// Kinds is a set of kinds of changes.
type Kinds uint8

// Has reports whether a kind is in the set.
func (ks Kinds) Has(k fanout.Kind) bool { return ks&(1<<k) != 0 }

// With returns the set with a kind.
func (ks Kinds) With(k fanout.Kind) Kinds { return ks | 1<<k }

// sessionState is the state of the profile's session; only the loop uses it.
type sessionState struct {
	session   Session // nil if there is none
	release   func()  // releases session; nil without one
	offers    Offers
	epoch     int           // counts sessions
	heldSince time.Duration // when session was opened
	late      bool          // session began without a channel, and has none yet

	dialing     bool
	hangUp      context.CancelFunc // ends the dial
	failures    int                // dials in a row that failed, and sessions that did not last
	redialAt    time.Duration      // the time of the next dial; 0: at once
	awaySince   time.Duration      // when a session was lost; 0: none
	silentSince time.Duration      // when the channel was lost; 0: it is open
	dialErr     error              // of the last dial

	// While a session is being restored, behind counts the accepted topics that are not yet
	// subscribed again. The restoration ends at behindUntil.
	behind      int
	behindUntil time.Duration
}

// pumpDial starts a dial if a session is needed and the time has come, and stops a dial if
// it is not needed any more.
func (w *Watch) pumpDial(ctx context.Context) {
	switch needed := w.book.Len() > 0; {
	case w.dialing && !needed:
		w.hangUp()
	case w.dialing, w.session != nil, !needed, w.book.Now() < w.redialAt:
	default:
		dial, cancel := context.WithCancel(ctx)
		w.dialing, w.hangUp = true, cancel
		// Ends when the session is open, by hangUp, or with the loop.
		w.book.Go(func() { w.dial(ctx, dial) })
	}
}

// dial opens a session; ctx is the loop's.
func (w *Watch) dial(ctx, dial context.Context) {
	s, release, err := w.opts.hold(dial, w.profile)
	hungUp := dial.Err() != nil
	if !w.book.Do(ctx, func() { w.dialed(s, release, err, hungUp) }) && err == nil {
		release()
	}
}

// dialed handles the outcome of a dial.
func (w *Watch) dialed(s Session, release func(), err error, hungUp bool) {
	w.dialing = false
	w.hangUp()
	switch needed := w.book.Len() > 0; {
	case err == nil && needed:
		w.restore(s, release)
	case err == nil:
		release()
	case hungUp: // it may be needed again by now
	default:
		w.dialErr = err
		w.putOffDial()
		w.opts.Logger.Debug("no session for subscriptions", "err", err, "tries", w.failures)
		w.book.Unreached(err)
	}
}

// putOffDial schedules the next dial, with a pause that grows with each failure in a row.
func (w *Watch) putOffDial() {
	w.redialAt = w.book.Now() + w.book.Pause(w.failures)
	w.failures++
}

// restore starts to use a session, and to subscribe to all topics that are needed.
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

// lost handles the loss of a session. Streams stay open.
func (w *Watch) lost() {
	if w.book.Now()-w.heldSince > w.opts.retry.Max {
		w.failures = 0
	}
	w.putOffDial()
	w.awaySince = w.book.Now()
	w.release()
	w.session, w.release, w.offers, w.silentSince = nil, nil, Offers{}, 0
	w.epoch++ // the outcomes of its calls, which end by themselves, have no effect any more
	w.emptyQueue()
	w.behind = 0
	for t := range w.book.All() {
		t.State.current, t.State.behind = off, false
		t.Missed = t.Missed || t.Promised()
		w.Look(t)
	}
	if n := w.book.Len(); n > 0 {
		w.opts.Logger.Warn("session lost, its subscriptions will be made again", "topics", n)
	}
}

// refreshOffers reads the session's current Offers. It reports changes that may have been
// missed: if gap is true, and if the session's channel opens for the first time.
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

// restored says that t is subscribed again, or was given up. After the last topic the
// restoration ends.
func (w *Watch) restored(t *topic) {
	if !t.State.behind {
		return
	}
	t.State.behind = false
	if w.behind--; w.behind == 0 {
		w.endRestoration()
	}
}

// endRestoration reports changes that may have been missed. Those of topics that are not
// yet subscribed again follow one by one.
func (w *Watch) endRestoration() {
	w.behind = 0
	for t := range w.book.All() {
		t.State.behind = false
		w.tellMissed(t)
	}
}

// sessionTick does what is due for the session.
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
		w.silentSince = now // in case a topic is accepted later
		w.giveUp(w.fromServer, errNoChannel)
	}
}

// nextSession returns when sessionTick has something to do.
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

// giveUp ends the streams of the accepted topics for which which returns true (M2L-38).
func (w *Watch) giveUp(which func(*topic) bool, reason error) {
	for t := range w.book.All() {
		if t.Promised() && which(t) {
			w.deny(t, reason)
		}
	}
}
