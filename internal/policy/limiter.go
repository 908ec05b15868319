package policy

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A Rate bounds requests. The zero value bounds nothing.
type Rate struct {
	PerSecond  float64 // on average; zero for no bound
	Burst      int     // at once; zero means as many as come in a second, at least one
	Concurrent int     // at the same time; zero for no bound
}

func (r Rate) isZero() bool { return r.PerSecond == 0 && r.Concurrent == 0 }

// Rates are those of one server.
type Rates struct {
	Principal Rate            // of each principal; of each address, if it is anonymous
	Server    Rate            // of all together
	Tools     map[string]Rate // of all calls of a tool
}

// IsZero reports whether the Rates bound nothing.
func (r *Rates) IsZero() bool {
	return r.Principal.isZero() && r.Server.isZero() && len(r.Tools) == 0
}

// maxShares bounds the principals whose requests are counted. The one that sent nothing for
// longest is forgotten first, but none that has a request in flight.
const maxShares = 10_000

// maxLooked is how many principals are looked at for one that can be forgotten.
const maxLooked = 16

// concurrentPause is after how long a request may be sent again that was one too many.
const concurrentPause = time.Second

// A Limiter counts the requests to one server. Safe for concurrent use.
type Limiter struct {
	principal Rate               // read-only, as the next two
	server    *bucket            // nil for no bound
	tools     map[string]*bucket // by name

	// mu guards shares. It is held for map work only.
	mu     sync.Mutex
	shares *simplelru.LRU[mcp.Share, *bucket]
}

// A bucket counts the requests that have one bound in common.
type bucket struct {
	what     string        // for people
	key      string        // of the bound in the configuration
	tokens   *rate.Limiter // nil for no bound
	most     int64         // at the same time; zero for no bound
	inFlight atomic.Int64
}

// An ExceededError says that a request is one too many.
type ExceededError struct {
	Key  string        // the bound, as it is called in the configuration
	What string        // of what there is too much, for people
	Wait time.Duration // after which the request may be sent again
}

func (e *ExceededError) Error() string { return e.What }

// A Ticket is the place of a request that is being served. The zero value is that of a
// request that is not counted.
type Ticket struct{ principal, tool, server *bucket }

// NewLimiter returns a Limiter.
func NewLimiter(r Rates) *Limiter {
	l := &Limiter{principal: r.Principal, server: newBucket(r.Server, "rate.server", "all clients together"), tools: make(map[string]*bucket)}
	for name, bound := range r.Tools {
		l.tools[name] = newBucket(bound, "rate.tools", fmt.Sprintf("all calls of %q together", name))
	}
	l.shares, _ = simplelru.NewLRU[mcp.Share, *bucket](maxShares+1, nil) // it never evicts by itself; the size is positive
	return l
}

func newBucket(r Rate, key, what string) *bucket {
	if r.isZero() {
		return nil
	}
	b := &bucket{what: what, key: key, most: int64(r.Concurrent)}
	if r.PerSecond > 0 {
		burst := r.Burst
		if burst == 0 {
			burst = max(1, int(r.PerSecond))
		}
		b.tokens = rate.NewLimiter(rate.Limit(r.PerSecond), burst)
	}
	return b
}

// Take counts a request in, until the Ticket is given back, or returns an
// [*ExceededError]. tool is the name of the tool that it calls; empty for none.
func (l *Limiter) Take(share mcp.Share, tool string) (t Ticket, err error) {
	if !l.principal.isZero() {
		if t.principal, err = l.of(share); err != nil {
			return Ticket{}, err
		}
	}
	if tool != "" {
		t.tool = l.tools[tool]
	}
	t.server = l.server
	return t, t.enter()
}

// of returns the bucket of a share.
func (l *Limiter) of(share mcp.Share) (*bucket, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.shares.Get(share); ok {
		return b, nil
	}
	if l.shares.Len() >= maxShares && !l.forgetLocked() {
		return nil, &ExceededError{"rate.principal", fmt.Sprintf("%d clients have requests in flight, the limit", maxShares), concurrentPause}
	}
	b := newBucket(l.principal, "rate.principal", "one client")
	l.shares.Add(share, b)
	return b, nil
}

// forgetLocked forgets a share that has no request in flight, one of those that sent
// nothing for longest.
func (l *Limiter) forgetLocked() bool {
	for range maxLooked {
		share, b, _ := l.shares.GetOldest()
		if b.inFlight.Load() == 0 {
			l.shares.Remove(share)
			return true
		}
		l.shares.Get(share) // it is not among the oldest
	}
	return false
}

// enter counts a request in. What its client has used up is looked at first, so that it
// can't use up what others have.
func (t *Ticket) enter() error {
	entered := [3]*bucket{t.principal, t.tool, t.server}
	for i, b := range entered {
		if err := b.enter(); err != nil {
			for _, before := range entered[:i] {
				before.leave()
			}
			*t = Ticket{}
			return err
		}
	}
	return nil
}

// Give counts the request out.
func (t *Ticket) Give() {
	t.principal.leave()
	t.tool.leave()
	t.server.leave()
	*t = Ticket{}
}

func (b *bucket) enter() error {
	if b == nil {
		return nil
	}
	if n := b.inFlight.Add(1); b.most > 0 && n > b.most {
		b.inFlight.Add(-1)
		return &ExceededError{b.key, fmt.Sprintf("%s may have %d requests in flight", b.what, b.most), concurrentPause}
	}
	if b.tokens == nil || b.tokens.Allow() {
		return nil
	}
	b.inFlight.Add(-1)
	return &ExceededError{b.key, fmt.Sprintf("%s may send %v requests per second", b.what, float64(b.tokens.Limit())), b.wait()}
}

func (b *bucket) leave() {
	if b != nil {
		b.inFlight.Add(-1)
	}
}

// wait returns after how long there is a token again.
func (b *bucket) wait() time.Duration {
	missing := 1 - b.tokens.Tokens()
	return max(time.Millisecond, time.Duration(missing/float64(b.tokens.Limit())*float64(time.Second)))
}
