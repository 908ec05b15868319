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
	// burst is for how long a share can save up, in seconds of its rate.
	burst = 10
	// maxAhead is how long a subscribe may be put off: who waits for it has to hear of
	// its outcome within Patience. One that would have to wait longer is refused.
	maxAhead = Patience / 2
	// maxAtOnce bounds the requests of one share that are on their way, over all
	// profiles.
	maxAtOnce = 256
	// churnLinger is how long what is not wanted any more is kept at least for a share
	// that has used up half of what it can save: it may come back for it.
	churnLinger = 30 * time.Second
	// maxShares is how many shares are remembered. What comes then has one in common.
	maxShares = 4096
	// sweepEvery is how often it is looked for shares to forget, at most.
	sweepEvery = time.Second
	// logEvery is how often it is logged that a share is at its limit.
	logEvery = 10 * time.Second
)

// ErrTooMany is why a subscribe is refused whose share has caused too many.
var ErrTooMany = errors.New("too many subscriptions at a time")

// Allowances hold the Allowance of each share at one upstream. Safe for concurrent use.
type Allowances struct {
	opts *upstream.Options // read-only

	// mu guards the fields below. It is taken under no other, and before an Allowance's.
	mu     sync.Mutex
	shares map[mcp.Share]*Allowance
	swept  time.Time // when the idle ones were forgotten
}

// NewAllowances returns Allowances of which nothing is used: each share may have
// o.Subscribes a second. o is filled in.
func NewAllowances(o *upstream.Options) *Allowances {
	return &Allowances{opts: o, shares: make(map[mcp.Share]*Allowance)}
}

// Of returns the Allowance of a share.
func (as *Allowances) Of(share mcp.Share) *Allowance {
	as.mu.Lock()
	defer as.mu.Unlock()
	if a := as.shares[share]; a != nil {
		return a
	}
	if now := time.Now(); len(as.shares) >= maxShares && now.Sub(as.swept) > sweepEvery {
		as.swept = now
		as.forgetIdleLocked()
	}
	if len(as.shares) >= maxShares {
		share = mcp.Share{} // no principal is called that
		if a := as.shares[share]; a != nil {
			return a
		}
	}
	a := &Allowance{opts: as.opts}
	as.shares[share] = a
	return a
}

// forgetIdleLocked forgets the shares that have all that they can save.
func (as *Allowances) forgetIdleLocked() {
	for share, a := range as.shares {
		if a.idle() {
			delete(as.shares, share)
		}
	}
}

// An Allowance bounds what one share, clients that count as one, causes at an upstream
// by what it wants and gives up: in rate, and at once. Safe for concurrent use.
type Allowance struct {
	opts *upstream.Options

	// mu guards the fields below. It is a leaf, held for arithmetic.
	mu     sync.Mutex
	starts bucket
	ends   bucket
	out    int
	told   time.Time
	untold int // hits since told
}

// A bucket says from when on the next request may be sent: before now if some are saved.
type bucket struct{ next time.Time }

// Subscribe counts one subscribe, or another request that begins something, and returns
// how long it has to wait. It reports false, and has counted nothing, if that is too
// long.
func (a *Allowance) Subscribe() (wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
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
	wait = a.waitLocked(&a.ends, time.Now())
	a.ends.next = a.ends.next.Add(a.gap())
	return wait
}

// Enter counts a request in that is about to be sent, or reports that too many are on
// their way.
func (a *Allowance) Enter() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.out >= maxAtOnce {
		a.hitLocked(time.Now(), "put off")
		return false
	}
	a.out++
	return true
}

// Leave counts a request out.
func (a *Allowance) Leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out--
}

// Linger returns how long something is kept that is not wanted any more: usual, or
// longer for a share that has used up much of what it has saved.
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

// gap is what one request takes of the rate.
func (a *Allowance) gap() time.Duration { return time.Second / time.Duration(a.opts.Subscribes) }

// full is all that a share can save.
func (a *Allowance) full() time.Duration { return burst * time.Second }

// waitLocked returns how long the next request of b has to wait.
func (a *Allowance) waitLocked(b *bucket, now time.Time) time.Duration {
	if saved := now.Add(-a.full()); b.next.Before(saved) {
		b.next = saved
	}
	return max(b.next.Sub(now), 0)
}

// hitLocked tells that the limit was hit.
func (a *Allowance) hitLocked(now time.Time, how string) {
	a.opts.Metrics.Limit(a.opts.Name, limits.SubscribesEach.Key)
	a.untold++
	if now.Sub(a.told) < logEvery {
		return
	}
	a.opts.Logger.Warn("a client's subscriptions are "+how+": it has caused too many", "limit", a.opts.Subscribes, "hits", a.untold)
	a.told, a.untold = now, 0
}
