package detect

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// learnEvery is the least time between two questions to a Memory that knows nothing.
const learnEvery = time.Second

// A sleep is the time before the first request to a Detector with OnDemand. The mutex of its state
// guards it.
type sleep struct {
	awake   bool
	learned time.Time // when Memory was asked last
}

// Asleep reports whether the Detector waits for a first request, with OnDemand.
func (d *Detector) Asleep() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opts.OnDemand && !d.awake
}

// Learn takes from Memory, while the Detector is asleep, what is known of the era. Nothing is
// started.
func (d *Detector) Learn() {
	d.mu.Lock()
	skip := !d.opts.OnDemand || d.awake || d.closed || d.back != nil || time.Since(d.learned) < learnEvery
	if !skip {
		d.learned = time.Now()
	}
	d.mu.Unlock()
	if skip {
		return
	}
	known := d.knownEra()
	if known.Era == spec.Unknown {
		return
	}
	back, err := d.opts.Open(known)
	if err != nil {
		return // the first request hears of it
	}
	d.mu.Lock()
	late := d.awake || d.closed || d.back != nil
	if !late {
		d.back, d.era, d.err = back, known.Era, nil
		d.verdict.why, d.verdict.since = known.Why, time.Now()
		d.announceLocked()
	}
	d.mu.Unlock()
	if late {
		d.end(back)
	}
}

// awaken ends the sleep, and returns the back that was learned of; nil if there is none.
func (d *Detector) awaken() mcp.Back {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.awake = true
	return d.back
}
