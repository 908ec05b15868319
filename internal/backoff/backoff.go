// Package backoff says how long to wait before something is tried again, and waits.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// A Backoff is a row of pauses, each twice as long as the one before.
type Backoff struct {
	Min time.Duration // the first pause, more than 0
	Max time.Duration // no pause is longer
}

// After returns the pause after so many failures in a row that came before the last
// one: Min after none.
func (b Backoff) After(failures int) time.Duration {
	pause := b.Min
	for ; failures > 0 && pause < b.Max; failures-- {
		pause *= 2
	}
	return min(pause, b.Max)
}

// Next returns the pause that follows pause.
func (b Backoff) Next(pause time.Duration) time.Duration {
	return min(max(2*pause, b.Min), b.Max)
}

// Jitter lengthens a pause by up to a quarter, so that many who lost one server at once
// don't come back as one.
func Jitter(pause time.Duration) time.Duration {
	return pause + rand.N(max(pause, 0)/4+1)
}

// Wait returns after d, or with ctx's cause when ctx ends first.
func Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
