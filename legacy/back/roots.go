package back

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// roots records which roots the server of a session has. If the server got a provisional
// answer, or has the roots of another client, it is corrected before the next call is
// sent; see refresh. Safe for concurrent use.
type roots struct {
	s        *sessionLink
	profile  profileRoots
	declared bool // the client declared roots

	// turn has capacity 1: the goroutine that has put something in corrects the server.
	turn    chan struct{}
	started atomic.Bool    // the server has had the time to request roots at its start
	changed wake.Broadcast // awaited, stale or open has changed

	// mu guards the fields below. It is a leaf.
	mu        sync.Mutex
	stale     bool        // the server got a provisional answer
	changes   int         // how often clients have said that theirs have changed
	owner     *rootsOwner // the client whose roots the server has; nil if it never got any
	awaited   *call       // the call whose caller handles the next roots/list
	announced bool        // the next roots/list follows announce
	open      int         // pending roots/list requests for which no call was sent
	came      bool        // there was one since setAwaited

	initialized time.Time // when the handshake ended
	starting    bool      // awaitStartup is waiting for the server
	busy        int       // pending roots/list requests
	last        time.Time // when the last of them ended
}

func newRoots(s *sessionLink, p profileRoots, declared bool) *roots {
	return &roots{s: s, profile: p, declared: declared, turn: make(chan struct{}, 1)}
}

// A rootsOwner identifies a client whose roots a server has, as far as clients that share
// a session can be distinguished.
type rootsOwner struct {
	share   mcp.Share
	session string
	info    []byte
}

// is reports whether a request may come from the same client.
func (o *rootsOwner) is(req *mcp.Request) bool {
	return o.share == req.Share && o.session == req.Session && bytes.Equal(o.info, req.ClientInfo)
}

// noOwner is the owner after the roots of another client were replaced by none.
var noOwner = new(rootsOwner)

// setOwner records that the server gets the roots of c's client, or none if c is nil.
func (r *roots) setOwner(c *call) {
	owner := noOwner
	if c != nil {
		owner = &rootsOwner{c.req.Share, c.req.Session, bytes.Clone(c.req.ClientInfo)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owner = owner
}

// ownedByOther reports whether the server has the roots of another client than c's, and
// then records that it must be corrected.
func (r *roots) ownedByOther(c *call) bool {
	if r.s.opts.OneClient {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	others := false
	switch r.owner {
	case nil:
	case noOwner:
		others = c.mayBeAsked
	default:
		others = !r.owner.is(c.req)
	}
	r.stale = r.stale || others
	return others
}

// settled records that the server has got the client's own roots, and lets waiting calls continue.
// changes is what begin has returned: the client is asked again if its roots have changed since. It is
// negative for a server that does not ask.
func (r *roots) settled(changes int) {
	r.mu.Lock()
	r.stale = r.stale && changes >= 0 && r.changes != changes
	r.mu.Unlock()
	r.changed.Fire()
}

// isDue reports whether the server must be corrected.
func (r *roots) isDue() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stale && len(r.s.opts.Settings.Roots) == 0
}

func rootsResult(roots []byte) []byte {
	return wire.AppendEdited(nil, nil, wire.Edit{Name: "roots", Value: roots})
}

// provisional returns the answer to roots/list if no client can be asked.
func (r *roots) provisional() json.RawMessage {
	if last := r.profile.last(); last != nil {
		return last
	}
	return rootsResult([]byte("[]"))
}

// begin counts a pending roots/list. It returns how often clients have said so far that their roots have
// changed; see settled.
func (r *roots) begin() (changes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy++
	return r.changes
}

// attribute returns the call that a roots/list belongs to, nil for none, and whether that
// is known.
func (r *roots) attribute(p *pendingInput) (c *call, told bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.announced:
		r.announced = false // it asks because another session's client has answered
		p.announced = true
		return nil, true
	case r.awaited != nil:
		r.countLocked(p)
		return r.awaited, true
	}
	return nil, false
}

// noteProvisional records that the server gets a provisional answer, so that it is
// corrected before the next call. In a further lane of a profile whose roots are known,
// that answer suffices.
func (r *roots) noteProvisional(p *pendingInput) {
	hasBetter := r.profile.lane && r.profile.last() != nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.countLocked(p)
	r.stale = r.declared && !hasBetter
}

func (r *roots) countLocked(p *pendingInput) {
	p.counted, r.came = true, true
	r.open++
	r.changed.Fire()
}

// end removes a pending roots/list.
func (r *roots) end(p *pendingInput) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy--
	r.last = time.Now()
	if p.counted {
		r.open--
		r.changed.Fire()
	}
}

// announce makes the server request the roots that another session of the profile has got.
func (r *roots) announce() {
	r.mu.Lock()
	r.announced = true
	r.mu.Unlock()
	r.s.SendLater(context.Background(), wire.AppendNotification(nil, spec.NotifyRootsListChanged, nil, nil))
}

func (r *roots) setStarting(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starting = on
}

func (r *roots) setInitialized() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.initialized = time.Now()
}

// isInitialized reports whether the handshake has ended.
func (r *roots) isInitialized() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.initialized.IsZero()
}

func (r *roots) setAwaited(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaited, r.came = c, false
}

// isOpen reports whether a roots/list is pending, and whether one came since setAwaited.
func (r *roots) isOpen() (open, came bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open > 0, r.came
}

// isSettling reports whether the session is being opened, or roots are or were just
// exchanged: many servers log something then, which belongs to no call.
func (r *roots) isSettling() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	toGreet := r.declared && len(r.s.opts.Settings.Roots) == 0 && !r.started.Load() && time.Since(r.initialized) < reorderTime
	return toGreet || r.starting || r.awaited != nil || r.busy > 0 || time.Since(r.last) < rootsSettleTime
}
