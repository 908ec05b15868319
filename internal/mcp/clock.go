package mcp

import (
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// A Clock bounds the wait for one response: it expires a time after the last activity, if
// it has such a time, and at the latest after a hard maximum. Pauses don't count for either. It knows how far
// the request has come. Safe for concurrent use.
type Clock struct {
	timer *time.Timer
	d     time.Duration // zero for any

	// mu guards the fields below, and resetting the timer.
	mu     sync.Mutex
	end    time.Time
	paused time.Time // zero while it runs

	progress float64 // the last value; meaningless unless moved
	moved    bool
	over     bool // Stop was called
}

// Start starts a Clock, before anything else is called. It calls expired at most once, on
// a goroutine of its own: d after the start or the last Restart, unless d is zero, or most
// after the start. The caller must call Stop.
func (k *Clock) Start(d, most time.Duration, expired func()) {
	k.d, k.end = d, time.Now().Add(most)
	k.timer = time.AfterFunc(k.wait(most), expired)
}

// wait returns how long to wait from now on, if most is left.
func (k *Clock) wait(most time.Duration) time.Duration {
	if k.d > 0 {
		most = min(k.d, most)
	}
	return wake.Positive(most)
}

// Restart restarts the wait, unless the Clock has expired.
func (k *Clock) Restart() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.restartLocked()
}

func (k *Clock) restartLocked() {
	if k.paused.IsZero() && k.timer.Stop() {
		k.timer.Reset(k.wait(time.Until(k.end)))
	}
}

// Advance restarts the wait, and reports whether a progress value may be told: it must be
// a number greater than the last.
//
// Spec: 2026-07-28, basic/patterns/progress.
func (k *Clock) Advance(value []byte) bool {
	v, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.restartLocked()
	if k.moved && v <= k.progress {
		return false
	}
	k.progress, k.moved = v, true
	return true
}

// Pause stops the time until Resume.
func (k *Clock) Pause() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.paused.IsZero() && k.timer.Stop() {
		k.paused = time.Now()
	}
}

// Resume continues after a pause, and restarts the wait.
func (k *Clock) Resume() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.paused.IsZero() || k.over {
		return
	}
	k.end = k.end.Add(time.Since(k.paused))
	k.paused = time.Time{}
	k.timer.Reset(k.wait(time.Until(k.end)))
}

// Stop stops the Clock.
func (k *Clock) Stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	k.timer.Stop()
}
