package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// RestTime is how long a client with a session of its own must have had nothing open
	// until its session is left, should it initialize again: it may be between two requests.
	RestTime = time.Second
	// yieldTime is the same until its session yields to another: on a busy machine some
	// clients take over a second from one request to the next.
	yieldTime = 2 * time.Second
	// handshakeTime is both for a client that has sent nothing but its handshake: one of many
	// that start at once may need several seconds to go on, and has not left. It does not hold
	// where the next process can't start beside that of the session.
	handshakeTime = 15 * time.Second
	// restPoll is how often a request that waits for a place looks for such a session.
	restPoll = 100 * time.Millisecond
	// maxWaiting bounds the requests that wait for a place, maxWaitingEach those of one
	// share.
	maxWaiting, maxWaitingEach = 1024, 256
)

// places counts the sessions, which may not be more than allowed, and has the requests that
// wait for one. It is guarded by Pool.mu.
type places struct {
	each     map[mcp.Share]int // the sessions that have not ended and those reserved, by share
	reserved int               // places of requests that waited, and have not opened the session yet
	waiting  []*waiter         // in the order of their arrival
}

// A waiter is a request that waits for a place.
type waiter struct {
	share mcp.Share
	turn  chan struct{} // closed when a place is reserved for it, or the Pool is closed
}

// A fullError says that all allowed sessions are in use.
type fullError struct {
	limit *limits.Limit
	max   int
}

func (e *fullError) Error() string { return "session limit reached" }

// refusal converts an error of get to the one for the client.
func (p *Pool) refusal(err error) error {
	full := (*fullError)(nil)
	switch {
	case errors.Is(err, mcp.ErrShutdown):
		return mcp.ErrNotSent // there is no session that it could have been sent in
	case !errors.As(err, &full):
		return err
	}
	p.opts.Metrics.Limit(p.opts.Name, full.limit.Key)
	p.opts.Logger.Warn("session limit reached", "limit", full.max, "key", full.limit.Key)
	text := fmt.Sprintf("all %d sessions are in use", full.max)
	if p.opts.Wait > 0 {
		text += fmt.Sprintf(", and none was free within %v", p.opts.Wait)
	}
	return mcp.RefuseForNow("server %q: %s; end sessions that are not needed and try again, or %s", p.opts.Name, text, full.limit.Raise())
}

// lackLocked returns the limit that forbids another session of a share, or nil.
func (p *Pool) lackLocked(share mcp.Share) *fullError {
	most, each := p.opts.MaxSessions, p.opts.MaxSessionsEach
	switch {
	case each > 0 && p.each[share] >= each:
		return &fullError{limits.CommandSessionsEach, each}
	case len(p.all)+p.reserved < most:
		return nil
	case each > 0:
		return &fullError{limits.CommandSessions, most}
	}
	return &fullError{limits.Sessions, most}
}

// makeRoomLocked ends an idle session if a limit is reached, of the share if possible. It
// returns a [*fullError] if there is none to end.
func (p *Pool) makeRoomLocked(share mcp.Share) error {
	full := p.lackLocked(share)
	if full == nil {
		return nil
	}
	for _, own := range []bool{true, false} {
		for _, e := range p.idle.Keys() { // oldest first
			if (e.owner == share) == own && p.mayYieldLocked(e, share) {
				p.evictLocked(e, share)
				return nil
			}
		}
	}
	return full
}

// mayYieldLocked reports whether the end of e, were it idle, would make room for a share.
// That of another share, where shares have a limit, ends only if that share holds more than
// an equal part of the places.
func (p *Pool) mayYieldLocked(e *entry, to mcp.Share) bool {
	full := p.lackLocked(to)
	switch {
	case e.owner == to:
		return true
	case full == nil || full.limit == limits.CommandSessionsEach:
		return false
	case p.opts.MaxSessionsEach == 0:
		return true
	}
	shares := len(p.each)
	if p.each[to] == 0 {
		shares++
	}
	return p.each[e.owner] > p.opts.MaxSessions/shares
}

// awaitPlace waits until a place is reserved for a request, at most as long as a session may
// take to open.
func (p *Pool) awaitPlace(ctx context.Context, share mcp.Share, full error) error {
	w := p.queue(share)
	if w == nil {
		return full
	}
	late := time.NewTimer(p.opts.Wait)
	defer late.Stop()
	look := time.NewTicker(restPoll)
	defer look.Stop()
	for {
		p.endRested(w)
		select {
		case <-w.turn:
			return nil
		case <-look.C:
			continue
		case <-late.C:
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
				full = cause
			}
		}
		p.giveUp(w)
		return full
	}
}

// queue returns a new waiter, or nil if too many wait.
func (p *Pool) queue(share mcp.Share) *waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := 0
	for _, w := range p.waiting {
		if w.share == share {
			own++
		}
	}
	if p.opts.Wait == 0 || len(p.waiting) >= maxWaiting || own >= maxWaitingEach {
		return nil
	}
	w := &waiter{share, make(chan struct{})}
	p.waiting = append(p.waiting, w)
	p.grantLocked() // a place may have become free meanwhile
	return w
}

// giveUp ends the waiting of w. If a place was reserved at the same moment, the next gets it.
func (p *Pool) giveUp(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return
	}
	p.unreserveLocked(w.share)
	p.grantLocked()
}

// grantLocked reserves the free places for who waits: for the share that holds the fewest,
// and of one share for who came first.
func (p *Pool) grantLocked() {
	for {
		next := -1
		for i, w := range p.waiting {
			if p.lackLocked(w.share) == nil && (next < 0 || p.each[w.share] < p.each[p.waiting[next].share]) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		w := p.waiting[next]
		p.waiting = slices.Delete(p.waiting, next, next+1)
		p.reserved++
		p.each[w.share]++
		close(w.turn)
	}
}

// unreserveLocked gives back a reserved place.
func (p *Pool) unreserveLocked(share mcp.Share) {
	p.reserved--
	p.uncountLocked(share)
}

// uncountLocked counts one session of a share less.
func (p *Pool) uncountLocked(share mcp.Share) {
	if p.each[share]--; p.each[share] == 0 {
		delete(p.each, share)
	}
}

// evictLocked ends an entry for a request of a share that found no place.
func (p *Pool) evictLocked(e *entry, to mcp.Share) {
	if full := p.lackLocked(to); full != nil {
		e.yields = full.limit
	}
	p.endLocked(e, endEvicted)
}

// yieldLocked ends an entry that has just become idle if a request waits for its place.
func (p *Pool) yieldLocked(e *entry) {
	for _, w := range p.waiting {
		if p.mayYieldLocked(e, w.share) {
			p.evictLocked(e, w.share)
			return
		}
	}
}

// endRested ends the session of a client, of the same share if possible, that has had
// nothing open for longest, if w still waits for a place. One that has just come back keeps it.
func (p *Pool) endRested(w *waiter) {
	rested := p.rested(yieldTime, handshakeTime)
	p.mu.Lock()
	defer p.mu.Unlock()
	var best *entry
	for e, d := range rested {
		if e.ended || !p.mayYieldLocked(e, w.share) {
			continue
		}
		own, bests := e.owner == w.share, best != nil && best.owner == w.share
		if best == nil || own && !bests || own == bests && d > rested[best] {
			best = e
		}
	}
	if best != nil && !wake.Closed(w.turn) && best.client.Retire(rested[best]) {
		p.evictLocked(best, w.share)
	}
}

// rested returns the sessions of one client each that has had nothing open for usual, or since
// its handshake for first, and for how long. It asks the clients without the lock: any may have come
// back when it returns, so that one is retired before its session ends.
func (p *Pool) rested(usual, first time.Duration) map[*entry]time.Duration {
	p.mu.Lock()
	var own []*entry
	for e := range p.all {
		if e.client != nil && e.opened() {
			own = append(own, e)
		}
	}
	p.mu.Unlock()
	out := make(map[*entry]time.Duration)
	for _, e := range own {
		d, begun, ok := e.client.Rest()
		if ok && (d >= usual && begun || d >= first) {
			out[e] = d
		}
	}
	return out
}
