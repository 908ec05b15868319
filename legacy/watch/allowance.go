package watch

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

// crowdedPause is how long a call waits before it is tried again whose payer has too
// many on their way.
const crowdedPause = 20 * time.Millisecond

// allowed reports whether a call for e may be sent at this moment, and counts it in.
// If not it is put off, or refused. To restore what was promised is nobody's doing,
// and no promise is broken for want of allowance.
func (w *Watch) allowed(e *tracked, step step) bool {
	restores := step == stepSubscribe && e.acked
	if !restores && e.paidAt == 0 && e.tries == 0 && !w.charge(e, step) {
		return false
	}
	if !restores && e.paidAt > w.now() {
		w.schedule(e, e.paidAt)
		return false
	}
	if !e.payer.Enter() {
		w.schedule(e, w.now()+crowdedPause)
		return false
	}
	e.paidAt = 0
	return true
}

// charge has the payer of e pay for a call, and reports false if it can't: then who
// waits for e has been refused.
func (w *Watch) charge(e *tracked, step step) bool {
	if step == stepUnsubscribe {
		e.paidAt = w.now() + e.payer.Unsubscribe()
		return true
	}
	wait, ok := e.payer.Subscribe()
	if !ok {
		w.refuse(e, subscribe.ErrTooMany)
		return false
	}
	e.paidAt = w.now() + wait
	return true
}
