package watch

import "time"

const (
	// crowdedPause is how long a bid waits before it is tried again whose payer has too
	// many on their way.
	crowdedPause = 20 * time.Millisecond
	// drainedPause is the same for a payer that has caused so many that it can't be said
	// when the next may follow.
	drainedPause = time.Second
)

// allowed reports whether a bid may be sent at this moment, one that is no merge. What
// was promised, and lost its stream, waits as well, and has its cue then.
func (w *watch) allowed() bool {
	if !w.paid && w.now() >= w.paidAt {
		wait, ok := w.payer.Subscribe()
		if w.paid = ok; !ok {
			wait = drainedPause
		}
		w.paidAt = w.now() + wait
	}
	return w.paid && w.now() >= w.paidAt
}

// allowedSingle is allowed where there is one stream: a bid that leaves topics out,
// because nobody wants them, waits behind the others.
func (w *watch) allowedSingle() bool {
	due := len(w.fresh) > 0 && w.now() >= max(w.freshAt, w.floor) ||
		len(w.suspects) > 0 && w.now() >= w.floor || len(w.had) > 0
	if !due || w.allowed() {
		return true
	}
	if w.mergeAt != 0 {
		w.mergeAt = max(w.mergeAt, w.paidAt)
	}
	return false
}
