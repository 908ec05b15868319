package wake

import (
	"context"
	"math/rand/v2"
	"time"
)

// A Backoff is a sequence of pauses, each twice as long as the previous one.
type Backoff struct {
	Min time.Duration // the first pause, more than 0
	Max time.Duration // no pause is longer
}

// After returns the pause before the next try, where failures is the number of
// consecutive failures before the last one. After(0) is Min.
func (b Backoff) After(failures int) time.Duration {
	pause := b.Min
	for ; failures > 0 && pause < b.Max; failures-- {
		pause *= 2
	}
	return min(pause, b.Max)
}

// Next returns the pause after pause.
func (b Backoff) Next(pause time.Duration) time.Duration {
	return min(max(2*pause, b.Min), b.Max)
}

// Jitter lengthens a pause by up to a quarter, so that many clients that lost the same
// server do not reconnect at the same time.
func Jitter(pause time.Duration) time.Duration {
	return pause + rand.N(max(pause, 0)/4+1)
}

// Positive returns the duration of a timer that may be due already: one of 0 s would fire while it is
// made, and two of these in one synctest bubble break the race detector (go.dev/issue/78156).
func Positive(d time.Duration) time.Duration { return max(d, 1) }

// Due returns the channel of a timer of 0 s, without the timer; see [Positive].
func Due() <-chan time.Time { return due }

var due = func() chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// Wait waits for d. If ctx ends first, it returns the cause.
func Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
