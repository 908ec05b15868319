package watch

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

// sessionState is what the loop knows of the profile's session.
type sessionState struct {
	session   Session // nil while there is none
	release   func()  // lets go of session; nil without
	offers    Offers
	lost      <-chan struct{} // the session's done; nil without
	epoch     int             // counts sessions
	heldSince time.Duration   // when session was got
	late      bool            // session came without a channel, and has none yet

	dialing  bool
	hangUp   context.CancelFunc // ends the dial
	vain     int                // dials in a row, or sessions that did not last
	redialAt time.Duration      // no dial before; 0: at once
	awayFrom time.Duration      // since when a session was lost; 0: none was
	muteFrom time.Duration      // since when there is no channel; 0: there is
	dialErr  error              // of the last dial

	// While a session is being restored, behind counts the promised topics that
	// are not subscribed again; it is given up at behindUntil.
	behind      int
	behindUntil time.Duration
}

// A dialReport says how a dial ended.
type dialReport struct {
	session Session
	release func()
	err     error
	vain    bool // nobody wanted the session any more
}

// pumpDial starts a dial if a session is needed and it is time, and ends one
// that nobody needs.
func (w *Watch) pumpDial(ctx context.Context) {
	switch {
	case w.dialing && w.empty():
		w.hangUp()
	case w.dialing, w.session != nil, w.empty(), w.now() < w.redialAt:
	default:
		ctx, cancel := context.WithCancel(ctx)
		w.dialing, w.hangUp = true, cancel
		// Ends when the session is there, by hangUp, or with the loop.
		w.workers.Go(func() { w.dial(ctx) })
	}
}

func (w *Watch) dial(ctx context.Context) {
	s, release, err := w.opts.Hold(ctx, w.profile)
	w.dials <- dialReport{session: s, release: release, err: err, vain: ctx.Err() != nil}
}

func (w *Watch) letGo(d dialReport) {
	if d.err == nil {
		d.release()
	}
}

// dialed takes the outcome of a dial.
func (w *Watch) dialed(d dialReport) {
	w.dialing = false
	w.hangUp()
	switch {
	case d.err == nil && !w.empty():
		w.restore(d)
	case d.err == nil:
		d.release()
	case d.vain: // somebody may want it again by now
	default:
		w.unreached(d.err)
	}
}

// unreached puts off another dial. An upstream that was never reached may not
// exist: who waits is told at once.
func (w *Watch) unreached(err error) {
	w.dialErr = err
	if w.table.reached.Load() {
		w.redialAt = w.now() + w.pause(w.vain)
		w.vain++
		w.opts.Logger.Debug("no session for subscriptions", "err", err, "tries", w.vain)
		return
	}
	w.failWaiting(err)
}

// awayError is what a Watch is told that has waited for a session in vain.
func (w *Watch) awayError() error {
	if w.dialErr == nil {
		return errNoAnswer
	}
	return w.dialErr
}

// restore takes a session and begins to subscribe on it to all that is wanted.
func (w *Watch) restore(d dialReport) {
	w.session, w.release, w.lost = d.session, d.release, d.session.Done()
	w.epoch++
	w.heldSince, w.awayFrom, w.redialAt, w.dialErr = w.now(), 0, 0, nil
	w.table.reached.Store(true)
	w.late = true
	w.refreshOffers()

	w.behind, w.behindUntil = 0, w.now()+subscribe.Patience
	for e := range w.all() {
		if e.behind = e.acked; e.behind {
			w.behind++
		}
	}
	for e := range w.all() {
		if !e.fading {
			e.due, e.tries = 0, 0
		}
		w.serve(e)
	}
}

// sessionLost forgets what the upstream knew. Streams stay open meanwhile.
func (w *Watch) sessionLost() {
	if w.now()-w.heldSince > w.opts.Retry.Max {
		w.vain = 0
	}
	w.redialAt = w.now() + w.pause(w.vain)
	w.vain++
	w.awayFrom = w.now()
	w.parted()
	for e := range w.all() {
		e.standing, e.behind, e.owed = stOff, false, e.owed || e.acked
		w.look(e)
	}
	w.behind = 0
	if !w.empty() {
		w.opts.Logger.Warn("session lost, its subscriptions will be made again", "topics", len(w.uris)+len(w.lists))
	}
}

// unwanted reports whether nobody wants any more what is watched: the session is held for
// the case that somebody soon does. It may be called from everywhere.
func (w *Watch) Unwanted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for e := range w.all() {
		if w.opts.Changes.Wanted(e.topic) {
			return false
		}
	}
	return true
}

// parted lets go of a lost session. Its calls end by themselves.
func (w *Watch) parted() {
	w.release()
	w.session, w.release, w.lost, w.offers, w.muteFrom = nil, nil, nil, Offers{}, 0
	w.epoch++ // reports of its calls say nothing any more
	w.disband()
}

// refreshOffers asks the session what is true now. It reports whether messages
// may have been missed that nobody will tell of: those that the server sent
// before the session's channel opened for the first time.
func (w *Watch) refreshOffers() (missed bool) {
	if w.session == nil {
		return false
	}
	w.offers = w.session.Offers()
	switch {
	case !w.offers.Channel:
		w.muteFrom = earliest(w.muteFrom, w.now())
		return false
	case w.late:
		w.late, missed = false, w.muteFrom != 0
	}
	w.muteFrom = 0
	return missed
}

// makeUp gives every promised topic one synthetic event, at once or when it is
// subscribed again (M2L-37).
func (w *Watch) makeUp() {
	for e := range w.all() {
		w.owe(e)
		w.payOwed(e)
	}
}

// catchUp notes that the restoration need not wait for e any longer. The last
// one ends it.
func (w *Watch) catchUp(e *tracked) {
	if !e.behind {
		return
	}
	e.behind = false
	if w.behind--; w.behind == 0 {
		w.restored()
	}
}

// restored tells of what may have been missed. Topics that are still not
// subscribed follow one by one.
func (w *Watch) restored() {
	w.behind = 0
	for e := range w.all() {
		e.behind = false
		w.payOwed(e)
	}
}

// sessionTick does what is due about the session.
func (w *Watch) sessionTick(now time.Duration) {
	if w.behind > 0 && w.behindUntil <= now {
		w.restored()
	}
	if w.awayFrom != 0 && w.awayFrom+w.opts.Unreachable <= now {
		w.awayFrom = 0
		w.failWaiting(w.awayError())
		w.giveUp(func(*tracked) bool { return true },
			fmt.Errorf("unreachable for %v: %v", w.opts.Unreachable, w.awayError()))
	}
	if w.muteFrom != 0 && w.muteFrom+w.opts.Unreachable <= now {
		w.muteFrom = now // in case something is promised meanwhile
		w.giveUp(w.fromServer, errNoChannel)
	}
}

// nextSession returns when sessionTick has something to do.
func (w *Watch) nextSession() time.Duration {
	var behind, away, mute, dial time.Duration
	if w.behind > 0 {
		behind = w.behindUntil
	}
	if w.awayFrom != 0 {
		away = w.awayFrom + w.opts.Unreachable
	}
	if w.muteFrom != 0 {
		mute = w.muteFrom + w.opts.Unreachable
	}
	if w.session == nil && !w.dialing {
		dial = w.redialAt
	}
	return earliest(behind, away, mute, dial)
}

// giveUp ends the streams of the promised topics that which picks (M2L-38).
func (w *Watch) giveUp(which func(*tracked) bool, reason error) {
	for e := range w.all() {
		if e.acked && which(e) {
			w.refuse(e, reason)
		}
	}
}
