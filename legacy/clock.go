package legacy

import (
	"sync"
	"time"
)

// clock bounds the wait for one answer: d after the last progress, but at most
// until end. Pauses don't count. Safe for concurrent use.
type clock struct {
	timer *time.Timer
	d     time.Duration

	// mu guards the fields below, and the timer's being set anew.
	mu     sync.Mutex
	end    time.Time
	paused time.Time // zero while it runs
	over   bool      // it was stopped
}

func startClock(t Timeouts, expired func()) *clock {
	return &clock{timer: time.AfterFunc(t.Request, expired), d: t.Request, end: time.Now().Add(t.Max)}
}

// restart begins the wait anew. A clock that has run down stays so.
func (k *clock) restart() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.paused.IsZero() && k.timer.Stop() {
		k.timer.Reset(min(k.d, time.Until(k.end)))
	}
}

func (k *clock) pause() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer.Stop() {
		k.paused = time.Now()
	}
}

// resume goes on after a pause, with the wait for one answer begun anew.
func (k *clock) resume() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.paused.IsZero() || k.over {
		return
	}
	k.end = k.end.Add(time.Since(k.paused))
	k.paused = time.Time{}
	k.timer.Reset(min(k.d, time.Until(k.end)))
}

func (k *clock) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	k.timer.Stop()
}
