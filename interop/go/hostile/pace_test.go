//go:build linux

package hostile

import (
	"context"
	"sync"
	"syscall"
	"time"
)

// burst is how much CPU time a pace saves up.
const burst = 50 * time.Millisecond

// A pace keeps the CPU time of this process to a part of a core: a token bucket that
// fills with time and is emptied by what the process has used. Safe for concurrent use.
type pace struct {
	share float64

	mu     sync.Mutex // guards the fields below
	credit time.Duration
	at     time.Time     // when credit was reckoned
	used   time.Duration // of CPU time, by then
}

func newPace(share float64) *pace { return &pace{share: share, at: time.Now(), used: cpuTime()} }

// wait returns once there is CPU time to use, or false if ctx has ended.
func (p *pace) wait(ctx context.Context) bool {
	for !p.may() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

func (p *pace) may() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, used := time.Now(), cpuTime()
	p.credit += time.Duration(float64(now.Sub(p.at))*p.share) - (used - p.used)
	p.credit = min(p.credit, burst)
	p.at, p.used = now, used
	return p.credit > 0
}

// cpuTime returns how much CPU time this process has used.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // of a call that can't fail
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
