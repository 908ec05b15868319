package source

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

const (
	// refusedFor is how long a replica is not asked again that has refused a scope, and
	// failedFor one that could not be asked.
	refusedFor = time.Minute
	failedFor  = 2 * time.Second
	// ownerlessFor is how long a replica that watches through an owner that is gone waits
	// for the next one, before it watches by itself.
	ownerlessFor = 2 * time.Second
)

// A scope is a profile with its subscribers. Source.mu guards all fields but the first ones.
type scope struct {
	profile mcp.Profile
	name    string        // of the claim
	claimed chan struct{} // closed when the engine was asked
	chosen  atomic.Bool   // it keeps no claims: the owner is the one that all choose

	aim     *target         // what should watch it
	moves   context.Context // ends when aim changes
	moved   context.CancelFunc
	moving  bool // a goroutine moves the follows to aim
	follows map[*follow]struct{}
	uses    map[*target]int // by aim, follows, and calls of Watch and moves under way
	users   int             // calls of Watch under way, and follows
	idle    time.Time       // since when there are none; zero if there are

	barred    bool   // this replica may not watch it: another one serves all of its principal, or may
	unowned   bool   // it is barred, and not known which one
	refusedBy string // the instance that did not serve the scope
	until     time.Time
	tenure
}

// A tenure is how long another replica owns a scope.
type tenure struct {
	claim  replicas.Claim
	since  time.Time // when this replica heard of the claim
	seizes int       // how often this one has taken it since the other was reached
}

// hear notes who owns the scope.
func (n *tenure) hear(c replicas.Claim, reached bool) {
	if n.claim.Epoch != c.Epoch || n.claim.Holder.Instance != c.Holder.Instance {
		n.claim, n.since = c, time.Now()
	}
	if reached {
		n.seizes = 0
	}
}

// ownerless reports whether the scope has had no owner for a moment only: some replica is about
// to claim it.
func (n *tenure) ownerless() bool {
	if n.claim.Holder.Instance != "" {
		n.claim, n.since = replicas.Claim{}, time.Now()
	}
	return time.Since(n.since) < ownerlessFor
}

// overdue reports whether an owner that can't be reached since a time has had its time.
func (n *tenure) overdue(lost time.Time) bool {
	if lost.Before(n.since) {
		lost = n.since
	}
	return time.Since(lost) >= seizeAfter<<min(n.seizes, maxSeizes)
}

// A follow is what one call of Watch has been given.
type follow struct {
	topics  []fanout.Topic
	on      *target // nil if it is pinned
	release func()
	pinned  bool // it is another replica's, and does not move
	left    bool
}

// enter returns the scope of a profile, after the engine was asked who owns it, or the other
// replicas.
func (s *Source) enter(ctx context.Context, p mcp.Profile) (*scope, error) {
	sc, err := s.join(ctx, p)
	if err == nil {
		s.settle(ctx, sc)
	}
	return sc, err
}

func (s *Source) join(ctx context.Context, p mcp.Profile) (*scope, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, mcp.ErrShutdown
	}
	sc := s.scopes[p.Scope]
	first := sc == nil
	if first {
		sc = &scope{profile: p, name: s.opts.Claims.Of(p), claimed: make(chan struct{}), follows: make(map[*follow]struct{}), uses: make(map[*target]int)}
		sc.profile.Share.Charged = true // subscribers were charged when they came
		s.aimLocked(sc, s.own)
		s.scopes[p.Scope] = sc
	}
	sc.users++
	sc.idle = time.Time{}
	s.mu.Unlock()
	if first {
		if _, err := s.group.Claim(ctx, sc.name); err != nil {
			s.group.opts.Logger.Debug("no claim, watching without", "upstream", s.opts.Name, "err", err)
			sc.chosen.Store(errors.Is(err, replicas.ErrNoClaims))
		}
		s.lookAt(sc)
		close(sc.claimed)
		return sc, nil
	}
	select {
	case <-sc.claimed:
		return sc, nil
	case <-ctx.Done():
		s.leave(sc, &follow{})
		return nil, context.Cause(ctx)
	}
}

// aimLocked has a target watch a scope. Its follows have to be moved there.
func (s *Source) aimLocked(sc *scope, t *target) {
	former := sc.aim
	s.takeLocked(sc, t)
	if sc.moved != nil {
		sc.moved()
	}
	sc.aim = t
	sc.moves, sc.moved = context.WithCancel(s.group.live)
	s.dropLocked(sc, former)
}

// use returns what watches a scope, until the context ends. The caller gives it back by keep,
// leave, unable or drop.
func (s *Source) use(sc *scope) (*target, context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, nil, mcp.ErrShutdown
	case sc.unowned:
		return nil, nil, s.refuse()
	}
	s.takeLocked(sc, sc.aim)
	return sc.aim, sc.moves, nil
}

// drop gives a target back.
func (s *Source) drop(sc *scope, t *target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(sc, t)
}

// keep adds a follow. If the scope has moved in the meantime, so does the follow.
func (s *Source) keep(sc *scope, f *follow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc.follows[f] = struct{}{}
	s.moveLocked(sc)
}

// leave ends a follow, and its part in the scope.
func (s *Source) leave(sc *scope, f *follow) {
	s.mu.Lock()
	if f.left {
		s.mu.Unlock()
		return
	}
	f.left = true
	release := f.release
	delete(sc.follows, f)
	s.dropLocked(sc, f.on)
	if sc.users--; sc.users == 0 {
		sc.idle = time.Now()
	}
	s.mu.Unlock()
	if release != nil {
		release()
	}
}

// unable notes that another replica did not watch for a scope. This one watches itself for a while,
// unless it may not: then it reports false.
func (s *Source) unable(sc *scope, t *target, pause time.Duration, err error) bool {
	s.mu.Lock()
	s.dropLocked(sc, t)
	barred := sc.barred
	if sc.aim == t && !barred {
		sc.refusedBy, sc.until = t.to.Instance, time.Now().Add(pause)
		s.aimLocked(sc, s.own)
		s.moveLocked(sc)
	}
	s.mu.Unlock()
	if !barred {
		s.group.opts.Logger.Info("the owner does not watch, watching here", "upstream", s.opts.Name, "replica", t.to.Instance, "err", err)
	}
	return !barred
}

// look looks at all scopes: which have another owner, and which have had no subscribers for
// a while.
func (s *Source) look() {
	s.mu.Lock()
	var idle, used []*scope
	for _, sc := range s.scopes {
		if sc.users == 0 && time.Since(sc.idle) >= linger {
			idle = append(idle, sc)
			delete(s.scopes, sc.profile.Scope)
			s.endLocked(sc)
		} else {
			used = append(used, sc)
		}
	}
	s.mu.Unlock()
	for _, sc := range idle {
		s.group.Release(sc.name)
	}
	for _, sc := range used {
		s.lookAt(sc)
	}
	s.settleAll(used)
}

// endLocked ends a scope that nobody uses.
func (s *Source) endLocked(sc *scope) {
	sc.moved()
	s.dropLocked(sc, sc.aim)
	sc.aim = nil
}

// lookAt has a scope watched by its owner.
func (s *Source) lookAt(sc *scope) {
	claim, owned := s.owner(sc)
	drained, others := s.group.isDrained(), owned && !s.group.isSelf(claim.Holder)
	s.mu.Lock()
	defer s.mu.Unlock()
	if sc.aim == nil || s.closed {
		return
	}
	sc.barred = s.opts.Claims.Whole && !sc.chosen.Load() && !drained && (!owned || others && claim.Epoch == 0)
	aim := s.own
	switch {
	case drained:
		aim = s.stayLocked(sc)
	case others && s.reachesLocked(sc, claim):
		aim = s.peerLocked(claim.Holder)
	case sc.barred, !owned && sc.ownerless():
		aim = sc.aim
	}
	sc.unowned = sc.barred && (!others || aim.to.Instance != claim.Holder.Instance)
	if aim != sc.aim {
		s.aimLocked(sc, aim)
	}
	s.moveLocked(sc)
	s.dropUnusedLocked(aim)
}

// owner returns who owns a scope. Where one replica serves all calls of a profile, it watches
// for the others, too. Without claims, the one that all choose does both; while the engine is away,
// of what nobody is known to hold, who hears the engine and can claim it, or that one, once all others
// were asked: see settle. Such an owner has no epoch.
func (s *Source) owner(sc *scope) (c replicas.Claim, owned bool) {
	engine := s.group.opts.Engine
	c, owned = s.group.Holder(sc.name)
	view := engine.View()
	switch {
	case owned || !s.opts.Claims.Whole:
		return c, owned
	case sc.chosen.Load():
		return replicas.Claim{Holder: view.Choose(sc.name)}, true
	case view.Away.IsZero():
		return c, false
	}
	if teller, there := engine.Teller(); there {
		return replicas.Claim{Holder: s.asked(sc, view, teller)}, true
	}
	return replicas.Claim{Holder: view.Choose(sc.name)}, engine.Vacant(sc.name) > 0
}

// asked returns the replica that was asked to watch a scope, and may have claimed it by that, as long as
// it lives; else the next one, of those that can.
func (s *Source) asked(sc *scope, view *replicas.View, next replicas.Replica) replicas.Replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sc.aim != nil {
		if r, lives := view.Member(sc.aim.to.Instance); lives {
			return r
		}
	}
	return next
}

// stayLocked returns what watches a scope of a replica that is draining: as before, as long
// as it can.
func (s *Source) stayLocked(sc *scope) *target {
	if _, lives := s.group.opts.Engine.View().Member(sc.aim.to.Instance); lives {
		return sc.aim
	}
	return s.own
}

// reachesLocked reports whether the owner of a scope can be asked. If it could not for long,
// the claim is taken from it.
func (s *Source) reachesLocked(sc *scope, c replicas.Claim) bool {
	lost := s.group.reach.lost(c.Holder.Instance)
	sc.hear(c, lost.IsZero())
	if !lost.IsZero() {
		if c.Epoch > 0 && !s.opts.Claims.Whole && sc.overdue(lost) { // one process is taken by who serves it
			sc.seizes++
			s.group.reach.seize(sc.name, c)
		}
		return false
	}
	return sc.refusedBy != c.Holder.Instance || time.Now().After(sc.until)
}

// refused is told that another replica has refused a listen request: all that it serves is
// watched here from then on.
func (s *Source) refused(t *target, scope string, err error) {
	s.mu.Lock()
	sc := s.scopes[scope]
	if sc != nil {
		s.takeLocked(sc, t) // given back by unable
	}
	s.mu.Unlock()
	if sc != nil {
		s.unable(sc, t, refusedFor, err)
	}
}

// peerOf returns how another replica is reached.
func (s *Source) peerOf(t *target) upstream.Peer {
	return upstream.Peer{
		URL:          s.group.opts.URL(t.to, Path+"/"+s.opts.Name),
		RoundTripper: s.group.reach.roundTripper(t.to),
		Credentials:  onBehalf{},
		Meta:         metaOf,
		Refused:      func(scope string, err error) { s.refused(t, scope, err) },
		Changes:      &watched{s.opts.Local, s, t},
	}
}
