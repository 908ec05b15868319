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

// A Rate limits requests. The zero value has no limit.
type Rate struct {
	PerSecond  float64 // on average; zero means no limit
	Burst      int     // at once; zero means as many as come in a second, at least one
	Concurrent int     // at the same time; zero means no limit
}

func (r Rate) isZero() bool { return r.PerSecond == 0 && r.Concurrent == 0 }

// Rates are the limits of one server.
type Rates struct {
	Principal Rate            // of each principal; of each address, if it is anonymous
	Server    Rate            // of all together
	Tools     map[string]Rate // of all calls of a tool
}

// IsZero reports whether there are no limits.
func (r *Rates) IsZero() bool {
	return r.Principal.isZero() && r.Server.isZero() && len(r.Tools) == 0
}

// maxShares limits the principals whose requests are counted. The one that has been idle
// longest is forgotten first, but none with a request in flight.
const maxShares = 10_000

// maxLooked is how many principals are checked to find one that can be forgotten.
const maxLooked = 16

// concurrentPause is the time after which a refused request may be sent again.
const concurrentPause = time.Second

// A Limiter counts the requests to one server. It is safe for concurrent use.
type Limiter struct {
	principal Rate               // read-only, like the next two
	server    *bucket            // nil means no limit
	tools     map[string]*bucket // by name

	// mu guards shares. It is held for map work only.
	mu     sync.Mutex
	shares *simplelru.LRU[mcp.Share, *bucket]
}

// A bucket counts the requests of one limit.
type bucket struct {
	what     string        // for people
	key      string        // the limit's name in the configuration
	tokens   *rate.Limiter // nil means no limit
	most     int64         // at the same time; zero means no limit
	inFlight atomic.Int64
}

// An ExceededError says that a limit was reached.
type ExceededError struct {
	Key  string        // the limit's name in the configuration
	What string        // what is limited, for people
	Wait time.Duration // when the request may be sent again
}

func (e *ExceededError) Error() string { return e.What }

// A Ticket represents a request in service. The zero value is for a request that is not
// counted.
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

// Take counts a request until the Ticket is given back, or returns an [*ExceededError].
// tool is the name of the tool that is called; empty if there is none.
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

// forgetLocked forgets one of the shares that have been idle longest, if it has no request
// in flight.
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

// enter counts a request. It checks the client's own limit first, so that a client at its
// limit uses nothing of the others.
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

// Give stops counting the request.
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

// wait returns when the next request is allowed.
func (b *bucket) wait() time.Duration {
	missing := 1 - b.tokens.Tokens()
	return max(time.Millisecond, time.Duration(missing/float64(b.tokens.Limit())*float64(time.Second)))
}
