package subscribe

import (
	"errors"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

const (
	// burst is for how many seconds a share can save up its rate.
	burst = 10
	// maxAhead is how long a subscribe may be postponed: its subscriber must get an answer
	// within Patience. One that would have to wait longer is refused.
	maxAhead = Patience / 2
	// maxAtOnce limits the requests of one share that are in flight, over all profiles.
	maxAtOnce = 256
	// churnLinger is the minimum time for which unneeded topics stay subscribed if a share
	// has used half of what it can save: it may need them again.
	churnLinger = 30 * time.Second
	// maxShares is how many shares have Allowances of their own. Further shares have one in
	// common.
	maxShares = 4096
	// sweepEvery is the minimum time between two searches for shares to forget.
	sweepEvery = time.Second
	// logEvery is the minimum time between two log messages about a share at its limit.
	logEvery = 10 * time.Second
)

// ErrTooMany says that a subscribe was refused because its share has caused too many.
var ErrTooMany = errors.New("too many subscriptions at a time")

// Allowances has the Allowance of each share at one server. It is safe for concurrent use.
type Allowances struct {
	opts *upstream.Options // read-only

	// mu guards the fields below. No other lock may be held when it is taken; an
	// Allowance's may be taken under it.
	mu     sync.Mutex
	shares map[mcp.Share]*Allowance
	free   *Allowance // of all shares that are Charged
	swept  time.Time  // when idle shares were last forgotten
}

// NewAllowances returns unused Allowances: each share may have o.Subscribes per second. o
// must be complete.
func NewAllowances(o *upstream.Options) *Allowances {
	return &Allowances{opts: o, shares: make(map[mcp.Share]*Allowance), free: &Allowance{opts: o, free: true}}
}

// Of returns the Allowance of a share.
func (as *Allowances) Of(share mcp.Share) *Allowance {
	as.mu.Lock()
	defer as.mu.Unlock()
	if share.Charged {
		return as.free
	}
	if a := as.shares[share]; a != nil {
		return a
	}
	if now := time.Now(); len(as.shares) >= maxShares && now.Sub(as.swept) > sweepEvery {
		as.swept = now
		as.forgetIdleLocked()
	}
	if len(as.shares) >= maxShares {
		share = mcp.Share{} // no principal has this name
		if a := as.shares[share]; a != nil {
			return a
		}
	}
	a := &Allowance{opts: as.opts}
	as.shares[share] = a
	return a
}

// forgetIdleLocked forgets the shares that have saved up all they can.
func (as *Allowances) forgetIdleLocked() {
	for share, a := range as.shares {
		if a.idle() {
			delete(as.shares, share)
		}
	}
}

// An Allowance limits the requests that one share causes at a server by its subscriptions:
// their rate, and their number in flight. It is safe for concurrent use.
type Allowance struct {
	opts *upstream.Options
	free bool // limits nothing; read-only

	// mu guards the fields below. It is a leaf, held for arithmetic only.
	mu     sync.Mutex
	starts bucket
	ends   bucket
	out    int
	told   time.Time
	untold int // refusals since the last log message
}

// A bucket says when the next request may be sent: in the past if some are saved up.
type bucket struct{ next time.Time }

// Subscribe counts one subscribe, or another request that starts something, and returns how
// long it has to wait. If that is too long, it returns false and counts nothing.
func (a *Allowance) Subscribe() (wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if a.free {
		return 0, true
	}
	if wait = a.waitLocked(&a.starts, now); wait > maxAhead {
		a.hitLocked(now, "refused")
		return 0, false
	}
	if wait > 0 {
		a.hitLocked(now, "put off")
	}
	a.starts.next = a.starts.next.Add(a.gap())
	return wait, true
}

// Unsubscribe counts one unsubscribe, and returns how long it has to wait.
func (a *Allowance) Unsubscribe() (wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.free {
		return 0
	}
	wait = a.waitLocked(&a.ends, time.Now())
	a.ends.next = a.ends.next.Add(a.gap())
	return wait
}

// Enter counts a request that is about to be sent. It returns false if too many are in
// flight.
func (a *Allowance) Enter() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.out >= maxAtOnce && !a.free {
		a.hitLocked(time.Now(), "put off")
		return false
	}
	a.out++
	return true
}

// Leave stops counting a request that has ended.
func (a *Allowance) Leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out--
}

// Linger returns how long an unneeded topic stays subscribed: usual, or longer for a share
// that has used much of what it has saved.
func (a *Allowance) Linger(usual time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); a.starts.next.Before(now.Add(-a.full() / 2)) {
		return usual
	}
	return max(usual, churnLinger)
}

func (a *Allowance) idle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	saved := time.Now().Add(-a.full())
	return a.out == 0 && a.starts.next.Before(saved) && a.ends.next.Before(saved)
}

// gap returns the time between two requests at the rate.
func (a *Allowance) gap() time.Duration { return time.Second / time.Duration(a.opts.Subscribes) }

// full returns how far a share can save up.
func (a *Allowance) full() time.Duration { return burst * time.Second }

// waitLocked returns how long the next request of b has to wait.
func (a *Allowance) waitLocked(b *bucket, now time.Time) time.Duration {
	if saved := now.Add(-a.full()); b.next.Before(saved) {
		b.next = saved
	}
	return max(b.next.Sub(now), 0)
}

// hitLocked counts and logs that the limit was reached.
func (a *Allowance) hitLocked(now time.Time, how string) {
	a.opts.Metrics.Limit(a.opts.Name, limits.SubscribesEach.Key)
	a.untold++
	if now.Sub(a.told) < logEvery {
		return
	}
	a.opts.Logger.Warn("a client's subscriptions are "+how+": it has caused too many", "limit", a.opts.Subscribes, "hits", a.untold)
	a.told, a.untold = now, 0
}
