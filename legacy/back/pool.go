package back

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// Why a session ends, for Metrics.
const (
	endIdle     = "idle"
	endEvicted  = "evicted"
	endReleased = "released"
	endLost     = "lost"
	endClosed   = "closed"
)

// A pool keeps the sessions of one upstream, one per profile. A session with a
// request in flight or a watch on it is in use; the others are idle, and end
// after a while, or earlier, the least recently used first, when there are too
// many.
type pool struct {
	// Set by newPool, read-only after.
	opts *Options
	dial dialFunc
	// lingers reports whether a scope's session is held by a watch that nobody wants any
	// more.
	lingers func(scope string) bool

	// mu guards the fields below and the entries. It is held for map work only.
	mu     sync.Mutex
	shared map[string]*entry                  // by scope; nil after close
	idle   *simplelru.LRU[*entry, struct{}]   // those of shared that nobody uses
	all    map[*entry]struct{}                // not ended, private ones among them
	rests  *simplelru.LRU[string, *rest]      // by scope whose server failed lately; see allScopes
	stops  map[*entry]context.CancelCauseFunc // dials under way
	each   map[mcp.Share]int                  // of all

	ending int           // sessions that are being ended
	ended  chan struct{} // closed when ending becomes zero; nil if nobody waits

	running sync.WaitGroup // dials and goodbyes
}

// A pooled is what a pool keeps: a session, or the Link of one client's own.
type pooled interface {
	Done() <-chan struct{}
	Alive() bool
	Err() error
	Close(ctx context.Context)
}

// A dialFunc opens what a pool keeps.
type dialFunc func(context.Context, mcp.Profile) (pooled, error)

// An entry is one session, or the attempt to open one.
type entry struct {
	scope   string
	owner   mcp.Share     // who had it opened
	private bool          // not in shared: of one request, or of one client
	unused  func() bool   // whether the client that it is of has nothing open; may be nil
	ready   chan struct{} // closed when the dial has ended

	// Written before ready is closed, read-only after.
	s   pooled
	err error

	// Guarded by pool.mu.
	uses  int
	since time.Time
	left  time.Time   // when it was last in use; meaningless before that
	timer *time.Timer // nil before the first rest
	armed bool        // the timer runs; it does so over uses, too
	ended bool
}

// errUnwanted is why a dial ends that nobody waits for any more.
var errUnwanted = errors.New("nobody waits for the session any more")

// A fullError says that every session that may be open is, and is in use.
type fullError struct {
	limit *limits.Limit
	max   int
}

func (e *fullError) Error() string { return "session limit reached" }

func newPool(opts *Options, dial dialFunc) (*pool, error) {
	idle, err := simplelru.NewLRU[*entry, struct{}](math.MaxInt32, nil)
	if err != nil {
		return nil, fmt.Errorf("legacy/back: making session pool: %w", err)
	}
	rests, err := simplelru.NewLRU[string, *rest](opts.MaxSessions, nil)
	if err != nil {
		return nil, fmt.Errorf("legacy/back: making session pool: %w", err)
	}
	return &pool{
		opts:   opts,
		dial:   dial,
		shared: make(map[string]*entry),
		idle:   idle,
		all:    make(map[*entry]struct{}),
		rests:  rests,
		stops:  make(map[*entry]context.CancelCauseFunc),
		each:   make(map[mcp.Share]int),
	}, nil
}

// get returns a session of the profile and uses it until release is called, once.
// private asks for one of its own, ended by release. The dial is shared by all
// who wait for it and does not end with the first of them.
func (p *pool) get(ctx context.Context, profile mcp.Profile, private bool) (*session, func(), error) {
	of, release, err := p.getBy(ctx, profile, private, nil, p.dial)
	s, _ := of.(*session) // what p.dial opens
	return s, release, err
}

// getBy is get with another way to open a session. unused, which may be nil, reports
// whether the session may be ended all the same while it is used.
func (p *pool) getBy(ctx context.Context, profile mcp.Profile, private bool, unused func() bool, dial dialFunc) (pooled, func(), error) {
	e, habit, err := p.enter(ctx, profile, private, unused, dial)
	if full := (*fullError)(nil); errors.As(err, &full) {
		p.opts.Logger.Warn("session limit reached", "limit", full.max, "key", full.limit)
		return nil, nil, fmt.Errorf("%w: %w", mcp.ErrFull, mcp.RefuseForNow(
			"server %q: all %d sessions are in use; try again later, or %s", p.opts.Name, full.max, full.limit.Raise()))
	}
	if err != nil {
		return nil, nil, err
	}
	if err := e.await(ctx, habit); err != nil {
		p.leave(e)
		return nil, nil, err
	}
	return e.s, func() { p.leave(e) }, nil
}

// await returns when the dial has ended. The dial to a server that has made a habit
// of failing, which is not nil then, goes on without those who asked for it.
func (e *entry) await(ctx context.Context, habit error) error {
	if e.opened() {
		return e.err
	}
	var late <-chan time.Time
	if habit != nil {
		t := time.NewTimer(maxRestWait)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-e.ready:
		return e.err
	case <-late:
		return &upstream.Failure{Cause: cause(habit), Fate: upstream.NotSent}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// enter finds or makes the entry, and uses it. habit is the server's last failure,
// if failing is what it does.
func (p *pool) enter(ctx context.Context, profile mcp.Profile, private bool, unused func() bool, dial dialFunc) (e *entry, habit, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shared == nil {
		return nil, nil, mcp.ErrShutdown
	}
	r, _ := p.rests.Get(allScopes) // nil unless it failed lately
	if r != nil && r.pause > 0 {
		habit = r.err
	}
	if e := p.shared[profile.Scope]; e != nil && !private {
		if !e.opened() || e.s.Alive() {
			p.useLocked(e)
			return e, habit, nil
		}
		p.partLocked(e)
	}
	if habit != nil && r.trial {
		return nil, nil, &upstream.Failure{Cause: cause(habit), Fate: upstream.NotSent}
	}
	pause, err := p.admitLocked(profile)
	if err != nil {
		return nil, nil, err
	}
	if r != nil {
		r.trial = true
	}
	e = &entry{scope: profile.Scope, owner: profile.Share, private: private || profile.Single, unused: unused, ready: make(chan struct{}), uses: 1}
	p.all[e] = struct{}{}
	p.each[e.owner]++
	if !private {
		p.shared[e.scope] = e
	}
	// It ends with connect's time-out, or by close.
	dialCtx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	p.stops[e] = stop
	of := profile // captured here alone: most calls find their session
	p.running.Go(func() { p.open(dialCtx, e, of, dial, pause) })
	return e, habit, nil
}

// admitLocked makes room for a session and says how long its server has still to
// rest, or why there is no session to be had.
func (p *pool) admitLocked(profile mcp.Profile) (time.Duration, error) {
	var pause time.Duration
	for _, key := range []string{allScopes, profile.Scope} {
		r, ok := p.rests.Get(key)
		if !ok {
			continue
		}
		if pause = max(pause, time.Until(r.until)); pause > maxRestWait {
			return 0, &upstream.Failure{Cause: cause(r.err), Fate: upstream.NotSent}
		}
	}
	return pause, p.makeRoomLocked(profile.Share)
}

// makeRoomLocked ends an idle session where there would be too many with another of
// owner's: its own first, and none of others where each has a bound of its own. It returns a [*fullError] if none may be ended.
func (p *pool) makeRoomLocked(owner mcp.Share) error {
	full, limit := len(p.all) >= p.opts.MaxSessions, limits.Sessions
	each := p.opts.MaxSessionsEach
	if each > 0 {
		limit = limits.CommandSessions
	}
	switch {
	case each > 0 && p.each[owner] >= each && !p.evictLocked(&owner):
		return p.fullLocked(limits.CommandSessionsEach, each)
	case each > 0 && p.each[owner] >= each:
	case full && !p.evictLocked(&owner) && (each > 0 || !p.evictLocked(nil)):
		return p.fullLocked(limit, p.opts.MaxSessions)
	}
	return nil
}

func (p *pool) fullLocked(limit *limits.Limit, most int) error {
	p.opts.Metrics.Limit(p.opts.Name, limit.Key)
	return &fullError{limit, most}
}

// evictLocked ends the session that has been idle longest of owner's; nil means of all.
func (p *pool) evictLocked(owner *mcp.Share) bool {
	for _, e := range p.idle.Keys() { // oldest first
		if owner == nil || e.owner == *owner {
			p.endLocked(e, endEvicted)
			return true
		}
	}
	return false
}

// open dials for e after a pause.
func (p *pool) open(ctx context.Context, e *entry, profile mcp.Profile, dial dialFunc, pause time.Duration) {
	var s pooled
	err := backoff.Wait(ctx, pause)
	begun := time.Now()
	if err == nil {
		s, err = dial(ctx, profile)
	}
	stopped := wasStopped(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stops[e](nil)
	delete(p.stops, e)
	e.s, e.err, e.since = s, err, time.Now()
	close(e.ready)
	switch {
	case err != nil && stopped:
		p.endLocked(e, endLost)
	case err != nil:
		key := allScopes
		if f := upstream.AsFailure(err); f != nil && f.Spoke {
			p.rests.Remove(allScopes)
			key = e.scope
		}
		p.restLocked(key, begun, err)
		p.endLocked(e, endLost)
	case e.ended || p.shared == nil: // the pool was closed meanwhile
		p.opts.Metrics.SessionOpened(p.opts.Name)
		e.ended = false
		p.endLocked(e, endClosed)
	default:
		p.rests.Remove(allScopes)
		p.opts.Metrics.SessionOpened(p.opts.Name)
		p.running.Go(func() { p.mourn(e) }) // ends with the session
		if e.uses == 0 {
			p.restIdleLocked(e)
		}
	}
}

// mourn parts with a session once it is lost: a child that exited is waited for
// though nobody asks for it.
func (p *pool) mourn(e *entry) {
	<-e.s.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !e.ended {
		p.partLocked(e)
	}
}

// partLocked makes the next get open another session than e's, which was lost.
// It ends when its last user leaves: over HTTP, what runs under a lost session
// may still be answered.
func (p *pool) partLocked(e *entry) {
	if p.shared[e.scope] == e {
		delete(p.shared, e.scope)
	}
	if e.uses == 0 {
		p.endLocked(e, endLost)
	}
}

func (p *pool) useLocked(e *entry) {
	if e.uses++; e.uses == 1 {
		p.idle.Remove(e)
	}
}

// leave ends a use of e.
func (p *pool) leave(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.uses--
	switch {
	case e.uses > 0 || e.ended:
	case e.opened():
		p.restIdleLocked(e)
	case e.private:
		p.stops[e](errUnwanted) // nobody else will use it
	}
}

// opened reports whether the dial has ended.
func (e *entry) opened() bool {
	select {
	case <-e.ready:
		return true
	default:
		return false
	}
}

// sessions returns the open sessions of a scope, those of its lanes among them.
func (p *pool) sessions(scope string) []*session {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*session
	for e := range p.all {
		if base, _, _ := strings.Cut(e.scope, laneMark); base != scope || !e.opened() {
			continue
		}
		if s, ok := e.s.(*session); ok {
			out = append(out, s)
		}
	}
	return out
}

// close ends every session, used or not, and waits for all of it.
func (p *pool) close(ctx context.Context) error {
	p.mu.Lock()
	for _, stop := range p.stops {
		stop(mcp.ErrShutdown)
	}
	for e := range p.all {
		p.endLocked(e, endClosed)
	}
	p.shared = nil
	p.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends when the last goodbye is said, each of which is bounded
		p.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
