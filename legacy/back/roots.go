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
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// roots is what the server of a session knows of its clients' roots. A server that was
// answered provisionally, or has another client's roots, is put right before the next
// call is sent; see refresh. Safe for concurrent use.
type roots struct {
	s        *sessionLink
	profile  profileRoots
	declared bool // the client declared roots

	// turn has capacity 1: who has put something in puts the server right.
	turn    chan struct{}
	started atomic.Bool // the server has had the time to ask as it starts
	changed broadcast   // of awaited, stale and open

	// mu guards the fields below. It is a leaf.
	mu        sync.Mutex
	stale     bool        // the server was answered provisionally
	owner     *rootsOwner // whose roots the server has; nil if it was never given any
	awaited   *call       // whose caller the next roots/list is for
	announced bool        // the next roots/list asks for what is known
	open      int         // roots/list requests that belong to no call that was sent

	initialized time.Time // when the handshake was done
	starting    bool      // awaitStartup waits for the server
	busy        int       // roots/list requests that are open
	last        time.Time // when the last of them ended
}

func newRoots(s *sessionLink, p profileRoots, declared bool) *roots {
	return &roots{s: s, profile: p, declared: declared, turn: make(chan struct{}, 1)}
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

// noOwner owns the roots of a server from which others' were taken back.
var noOwner = new(rootsOwner)

// setOwner notes that the server is given the roots of c's client, or none if c is nil.
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
// notes that they are to be put right.
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

// settled says that the server has heard the client's own roots: calls that waited for
// that may go.
func (r *roots) settled() {
	r.mu.Lock()
	r.stale = false
	r.mu.Unlock()
	r.changed.fire()
}

// isDue reports whether the server is to be put right.
func (r *roots) isDue() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stale && r.s.opts.Roots == nil
}

func rootsResult(roots []byte) []byte {
	return wire.AppendEdited(nil, nil, wire.Edit{Name: "roots", Value: roots})
}

// provisional is the answer where there is nobody to ask.
func (r *roots) provisional() json.RawMessage {
	if last := r.profile.last(); last != nil {
		return last
	}
	return rootsResult([]byte("[]"))
}

// begin takes a roots/list in.
func (r *roots) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy++
}

// attribute returns the call that a roots/list belongs to, nil for none, and whether that is
// known.
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

// noteProvisional notes that the server gets a provisional answer: the next call is to put it right. A
// further lane of a profile whose client has answered is content with that.
func (r *roots) noteProvisional(p *pendingInput) {
	hasBetter := r.profile.lane && r.profile.last() != nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.countLocked(p)
	r.stale = r.declared && !hasBetter
}

func (r *roots) countLocked(p *pendingInput) {
	p.counted = true
	r.open++
	r.changed.fire()
}

// end forgets a roots/list.
func (r *roots) end(p *pendingInput) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy--
	r.last = time.Now()
	if p.counted {
		r.open--
		r.changed.fire()
	}
}

// announce has the server ask for the roots that another session of the profile has learnt.
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

func (r *roots) setAwaited(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaited = c
}

func (r *roots) isOpen() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open > 0
}

// isSettling reports whether the session is being opened, or roots are exchanged, or were
// a moment ago: many servers write of that to their log.
func (r *roots) isSettling() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	toGreet := r.declared && r.s.opts.Roots == nil && !r.started.Load() && time.Since(r.initialized) < reorderTime
	return toGreet || r.starting || r.awaited != nil || r.busy > 0 || time.Since(r.last) < rootsSettleTime
}
