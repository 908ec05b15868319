package mcp

import (
	"sync"
	"time"
)

// A Clock bounds the wait for one answer: a time after the last sign of life, but
// never more than a hard maximum. Pauses don't count, for neither. Safe for
// concurrent use.
type Clock struct {
	timer *time.Timer
	d     time.Duration

	// mu guards the fields below, and the timer's being set anew.
	mu     sync.Mutex
	end    time.Time
	paused time.Time // zero while it runs
	over   bool      // it was stopped
}

// StartClock returns a running Clock. expired is called at most once, on a
// goroutine of its own: d after the start or the last Restart, or most after the
// start. Whoever starts a Clock stops it.
func StartClock(d, most time.Duration, expired func()) *Clock {
	return &Clock{timer: time.AfterFunc(min(d, most), expired), d: d, end: time.Now().Add(most)}
}

// Restart begins the wait anew. A Clock that has run down stays so.
func (k *Clock) Restart() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.paused.IsZero() && k.timer.Stop() {
		k.timer.Reset(min(k.d, time.Until(k.end)))
	}
}

// Pause stops the time until Resume.
func (k *Clock) Pause() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.paused.IsZero() && k.timer.Stop() {
		k.paused = time.Now()
	}
}

// Resume goes on after a pause, with the wait for one answer begun anew.
func (k *Clock) Resume() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.paused.IsZero() || k.over {
		return
	}
	k.end = k.end.Add(time.Since(k.paused))
	k.paused = time.Time{}
	k.timer.Reset(min(k.d, time.Until(k.end)))
}

// Stop ends the Clock.
func (k *Clock) Stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	k.timer.Stop()
}
