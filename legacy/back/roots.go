package back

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// rootsTimeout bounds the wait for a server to ask again after it was told that
	// the roots have changed.
	rootsTimeout = time.Second
	forever      = 1<<63 - 1 // where something else bounds a wait
	// rootsDigest is how long a server has to act on an answer about roots before
	// the call that waited for it is sent.
	rootsDigest = 100 * time.Millisecond
	// strayTime is how much later than its answer to a ping a question of a server
	// may come that it had begun to put before: on another stream, or by another
	// thread.
	strayTime = 50 * time.Millisecond
)

// answerRoots answers roots/list: from the config, from the caller of c, or,
// where there is no call to ask, with what the only client has answered last, else
// nothing. That is provisional; see refreshRoots.
func (s *session) answerRoots(ctx context.Context, q *question, c *call) (mcp.InputResponse, error) {
	if s.opts.Roots != nil {
		return mcp.InputResponse{Result: rootsResult(s.opts.Roots)}, nil
	}
	switch {
	case c == nil:
		return mcp.InputResponse{Result: s.provisionalRoots()}, nil
	case !c.mayBeAsked: // others' roots are taken back, and its own not known
		q.fresh = s.ownRoots(nil)
		return mcp.InputResponse{Result: s.provisionalRoots()}, nil
	case mcp.MissingCapability(c.capabilities(), q.m.Method, nil) != nil:
		q.fresh = s.ownRoots(c) // which are none
		return mcp.InputResponse{Result: s.provisionalRoots()}, nil
	}
	a, err := s.ask(ctx, c, q)
	if err == nil && a.Err == nil {
		q.fresh = s.ownRoots(c)
		s.roots.put(s, a.Result)
	}
	return a, err
}

// A rootsOwner is a client whose roots a server has, as far as clients can be told apart
// that share a session.
type rootsOwner struct {
	share   mcp.Share
	session string
	info    []byte
}

// is reports whether a request may be of the same client.
func (o *rootsOwner) is(req *mcp.Request) bool {
	return o.share == req.Share && o.session == req.Session && bytes.Equal(o.info, req.ClientInfo)
}

// takenBack owns the roots of a server from which others' were taken back.
var takenBack = new(rootsOwner)

// ownRoots notes that the server is given the roots of c's client, or none if c is nil. It
// reports true.
func (s *session) ownRoots(c *call) bool {
	owner := takenBack
	if c != nil {
		owner = &rootsOwner{c.req.Share, c.req.Session, bytes.Clone(c.req.ClientInfo)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rootsOf = owner
	return true
}

// hasOthersRoots reports whether the server has the roots of another client than c's, and
// notes that they are to be put right.
func (s *session) hasOthersRoots(c *call) bool {
	if s.opts.OneClient {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	others := false
	switch s.rootsOf {
	case nil:
	case takenBack:
		others = c.mayBeAsked
	default:
		others = !s.rootsOf.is(c.req)
	}
	s.rootsStale = s.rootsStale || others
	return others
}

// rootsSettled says that the server has heard the client's own roots: calls that
// waited for that may go.
func (s *session) rootsSettled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rootsStale = false
	s.calls.change()
}

func rootsResult(roots []byte) []byte {
	return wire.AppendEdited(nil, nil, wire.Edit{Name: "roots", Value: roots})
}

// provisionalRoots is the answer where there is nobody to ask.
func (s *session) provisionalRoots() json.RawMessage {
	if last := s.roots.last(); last != nil {
		return last
	}
	return rootsResult([]byte("[]"))
}

// provisionalLocked notes that the server gets a provisional answer: the next call
// is to put it right. A further lane of a profile whose client has answered is
// content with that.
func (s *session) provisionalLocked(q *question) {
	s.openRootsLocked(q)
	s.rootsStale = s.asksRoots && !(s.roots.lane && s.roots.last() != nil)
}

// refreshRoots puts a server right that was answered provisionally: before the
// call c is sent, the server is told that the roots have changed, and its
// question goes to c's caller. Other calls wait for that a moment only. So is one that has
// the roots of another client, which are taken back where c's can't be asked.
//
// The first call of a session waits to see whether the server asks as it starts,
// which some do and deny everything until they are answered.
func (s *session) refreshRoots(ctx context.Context, c *call) error {
	if !s.asksRoots || s.opts.Roots != nil {
		return nil
	}
	if others := s.hasOthersRoots(c); !others && (!c.mayBeAsked || s.greeted.Load() && !s.rootsDue()) {
		return nil
	}
	t := time.NewTimer(rootsTimeout)
	defer t.Stop()
	select {
	case s.rootsTurn <- struct{}{}:
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.rootsTurn }()
	if err := s.greet(ctx); err != nil || !s.rootsDue() {
		return err
	}
	// An earlier answer must not come after the right one.
	if _, err := s.rootsOpenWithin(ctx, false, rootsTimeout); err != nil {
		return err
	}
	s.setRootsFor(c)
	defer s.setRootsFor(nil)
	if err := s.notify(ctx, spec.NotifyRootsListChanged, nil); err != nil {
		return err
	}
	return s.awaitRoots(ctx)
}

// greet returns when the server has done what it does on notifications/initialized:
// what it asks then precedes its answer to a ping, or follows it closely.
func (s *session) greet(ctx context.Context) error {
	if s.greeted.Load() {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, rootsTimeout)
	defer cancel()
	s.setGreeting(true)
	defer s.setGreeting(false)
	_, err := s.request(bounded, spec.MethodPing, nil)
	if err == nil && !s.rootsDue() {
		err = backoff.Wait(bounded, strayTime)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		s.log.Debug("greeting server", "error", cause(err))
	}
	s.greeted.Store(true)
	return nil
}

func (s *session) setGreeting(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.greeting = on
}

func (s *session) setRootsFor(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rootsFor = c
}

func (s *session) rootsDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rootsStale && s.opts.Roots == nil
}

// awaitRoots returns when the server was answered, or has not asked for a while.
// A server that does not ask again is not told for every call.
func (s *session) awaitRoots(ctx context.Context) error {
	asked, err := s.rootsOpenWithin(ctx, true, rootsTimeout)
	switch {
	case err != nil:
		return err
	case !asked:
		s.rootsSettled()
		return nil
	}
	if _, err = s.rootsOpenWithin(ctx, false, forever); err != nil {
		return err
	}
	// Servers look at the directories before they act on the answer, and nothing
	// tells when they have: a call right behind it would still meet the old ones.
	return backoff.Wait(ctx, rootsDigest)
}

// rootsOpenWithin waits until a question about roots is open, or none is, and
// reports whether that came to be in time.
func (s *session) rootsOpenWithin(ctx context.Context, want bool, d time.Duration) (bool, error) {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		open, changed := s.openRoots()
		if open == want || want && !s.rootsDue() { // it was answered before we looked
			return true, nil
		}
		select {
		case <-changed:
		case <-t.C:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

func (s *session) openRootsLocked(q *question) {
	q.counted = true
	s.rootsOpen++
	s.calls.change()
}

// openRoots reports whether a question of the server is open, and returns a channel
// that is closed when that may have changed.
func (s *session) openRoots() (bool, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rootsOpen > 0, s.calls.changes()
}

// tellRoots has the server ask for the roots that another session of the profile
// has learnt.
func (s *session) tellRoots() {
	s.mu.Lock()
	s.rootsNews = true
	s.mu.Unlock()
	s.sendLater(context.Background(), wire.AppendNotification(nil, spec.NotifyRootsListChanged, nil, nil))
}

// profileRoots is the last answer to roots/list of a profile that has one client, for all
// its sessions. Safe for concurrent use.
type profileRoots struct {
	b     *Back
	scope string
	lane  bool // the session is not the profile's first
}

func (p profileRoots) last() json.RawMessage {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	r, _ := p.b.roots.Get(p.scope)
	return r
}

// put keeps an answer and announces a changed one to the other sessions of the
// profile.
func (p profileRoots) put(from *session, answer json.RawMessage) {
	if !p.b.opts.OneClient {
		return
	}
	answer = bytes.Clone(answer)
	p.b.mu.Lock()
	before, _ := p.b.roots.Get(p.scope)
	p.b.roots.Add(p.scope, answer)
	p.b.mu.Unlock()
	if before == nil || bytes.Equal(before, answer) {
		return
	}
	for _, s := range p.b.pool.sessions(p.scope) {
		if s != from && s.asksRoots {
			s.tellRoots()
		}
	}
}
