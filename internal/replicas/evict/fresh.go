package evict

import (
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

const (
	// look is how often it is checked whether this replica has heard of the others.
	look = replicas.Heartbeat / 2
	// maxGap is how late a check may be: a process that was stopped for longer counted as
	// gone, and was not told of changes.
	maxGap = replicas.MemberTTL - look
)

// settle is how long all others have surely heard of this replica before it serves cached results.
func settle(slowest replicas.Pace) time.Duration { return 2 * slowest.Every() }

// A freshness is whether this replica hears of all changes.
type freshness struct {
	mu     sync.Mutex // guards the fields below
	since  time.Time  // since when it does; zero if it does not
	looked time.Time
}

// Fresh reports whether cached results may be served: this replica is known to the others, and
// reaches them, and so is told of every change. If it was not for a moment, the results are forgotten.
func (g *Group) Fresh() bool {
	now := time.Now()
	view := g.opts.Engine.View()
	hears := view.Fresh(now) && g.linked(now)
	fresh, lapsed := g.fresh.note(now, hears, settle(view.Slowest))
	if lapsed {
		g.opts.Cache.Clear()
	}
	return fresh
}

// note notes whether the replica is known to the others at this time.
func (f *freshness) note(now time.Time, hears bool, settles time.Duration) (fresh, lapsed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !hears || now.Sub(f.looked) > maxGap {
		lapsed = !f.since.IsZero()
		f.since = time.Time{}
	}
	f.looked = now
	if hears && f.since.IsZero() {
		f.since = now
	}
	return hears && now.Sub(f.since) >= settles, lapsed
}

// watchFreshness notices moments in which nobody wants a cached result.
func (g *Group) watchFreshness() {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for asked := (time.Time{}); ; {
		if time.Since(asked) >= askEvery {
			asked = time.Now()
			g.ask()
		}
		g.Fresh()
		select {
		case <-ticker.C:
		case <-g.live.Done():
			return
		}
	}
}
