package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// A Session is one session with a server.
type Session interface {
	// Done is closed when the session is lost or ended.
	Done() <-chan struct{}
	// Alive reports whether the session has not ended.
	Alive() bool
	// Err returns why the session has ended; nil if it has not.
	Err() error
	// Close ends the session at the server and waits for its goroutines. ctx bounds the
	// requests to the server, but not the wait.
	Close(ctx context.Context)
}

// A Holder is a Session in which clients may have state.
type Holder interface{ Held() *upstream.Held }

// A DialFunc opens a session.
type DialFunc func(context.Context, mcp.Profile) (Session, error)

// A Client has a session of its own, and decides whether that may end; [mcp.RelayClient] says more.
type Client interface {
	// Rest returns for how long the client has had nothing open in the session, and whether it
	// has sent more than its handshake; ok is false if it has something open.
	Rest() (d time.Duration, begun, ok bool)
	// Retire ends the session for the client if it has rested for least, and reports whether it has.
	Retire(least time.Duration) bool
}

// Options configure a Pool. All but MaxSessionsEach are required.
type Options struct {
	Name string // the server's name
	// MaxSessions bounds the number of open sessions, and MaxSessionsEach that of one
	// share. Zero means no limit for each share; if there is one, a session ends to make
	// room for another share only if its own holds more than an equal part.
	MaxSessions, MaxSessionsEach int
	// Wait is how long a request waits for a place when all sessions are in use; zero for
	// not at all.
	Wait time.Duration
	// Idle is how long an unused session stays open.
	Idle time.Duration
	// Lasts returns how long a session stays open unused, instead of Idle; negative for
	// ever. Nil means Idle. It is called with a lock, and takes none.
	Lasts func(Session) time.Duration
	// Lingers reports whether the only user of a scope's session does not need it any more.
	// It is called without a lock.
	Lingers func(scope string) bool
	// Unneeded reports whether a session that nobody has used for a time may end because a
	// client with an info, which may be nil, needs another one. It is called with a lock, and
	// takes none.
	Unneeded func(s Session, info json.RawMessage, unused time.Duration) bool
	// Eager makes each attempt at once, also while the server keeps failing: for servers that
	// are not started by it. Without it there are pauses, and one attempt at a time.
	Eager bool
	// Lost is called when the server has lost a session. It does not block.
	Lost func()

	Logger  *slog.Logger
	Metrics mcp.Metrics
}

// A Pool has the sessions of one server, one per scope. A session with a request in flight
// or a watch is in use; the others are idle. An idle session ends after a while, or, least
// recently used first, to make room. A Pool is safe for concurrent use.
type Pool struct {
	// Set by New, read-only after.
	opts Options
	dial DialFunc

	// mu guards the fields below and the entries. It is held for map work, and while a client
	// is retired.
	mu     sync.Mutex
	shared map[string]*entry                  // by scope; nil after Close
	idle   *simplelru.LRU[*entry, struct{}]   // the unused entries of shared
	all    map[*entry]struct{}                // all that have not ended, including private ones
	pauses *simplelru.LRU[string, *pause]     // of scopes in which the server failed lately; see allScopes
	stops  map[*entry]context.CancelCauseFunc // of the dials in progress
	places

	ending map[*entry]struct{} // whose sessions are being ended

	running sync.WaitGroup // dials, and sessions that are being ended
}

// An entry is one session, or the attempt to open one.
type entry struct {
	scope   string
	owner   mcp.Share       // the share that opened it
	private bool            // not in shared: of one request or one client
	client  Client          // nil unless it is a client's own
	info    json.RawMessage // of that client
	ready   chan struct{}   // closed when the dial has ended

	// Written before ready is closed, read-only after.
	s   Session // nil if err is not
	err error

	// Guarded by Pool.mu.
	uses     int
	since    time.Time
	left     time.Time     // when it was last in use; valid only if it is idle
	timer    *time.Timer   // nil until it is idle for the first time
	yields   *limits.Limit // why it ends, if it does for a request that found no place
	armed    bool          // the timer runs; it may run while the entry is in use
	released bool          // it ends once it is not used any more
	told     bool          // see tellLocked
	ended    bool
	gone     chan struct{} // closed when the session has ended at the server; nil until it is being ended
}

// errUnwanted is the cause when a dial is stopped because no request waits for it any more.
var errUnwanted = errors.New("nobody waits for the session any more")

// Stopped reports whether the Pool has stopped a dial, whose context is ctx. Its error then
// says nothing about the server.
func Stopped(ctx context.Context) bool {
	why := context.Cause(ctx)
	return why == mcp.ErrShutdown || why == errUnwanted
}

// New returns a Pool without sessions.
func New(opts Options, dial DialFunc) (*Pool, error) {
	idle, err := simplelru.NewLRU[*entry, struct{}](math.MaxInt32, nil)
	if err != nil {
		return nil, fmt.Errorf("legacy/pool: New: %w", err)
	}
	pauses, err := simplelru.NewLRU[string, *pause](opts.MaxSessions, nil)
	if err != nil {
		return nil, fmt.Errorf("legacy/pool: New: %w", err)
	}
	return &Pool{
		opts:   opts,
		dial:   dial,
		shared: make(map[string]*entry),
		idle:   idle,
		all:    make(map[*entry]struct{}),
		pauses: pauses,
		stops:  make(map[*entry]context.CancelCauseFunc),
		ending: make(map[*entry]struct{}),
		places: places{each: make(map[mcp.Share]int)},
	}, nil
}

// Get returns a session of the profile, which is in use until release is called, once.
// private asks for a session that is not shared and ends with release. Requests share a
// dial; it does not end with the first of them.
func (p *Pool) Get(ctx context.Context, profile mcp.Profile, private bool) (Session, func(), error) {
	return p.get(ctx, profile, private, nil, p.dial)
}

// GetOwn uses a session of one client only, which dial opens. It may be ended though it is
// in use if its client rests.
func (p *Pool) GetOwn(ctx context.Context, profile mcp.Profile, client Client, dial DialFunc) (Session, func(), error) {
	return p.get(ctx, profile, true, client, dial)
}

func (p *Pool) get(ctx context.Context, profile mcp.Profile, private bool, client Client, dial DialFunc) (Session, func(), error) {
	e, failing, err := p.enter(ctx, profile, private, false, client, dial)
	if full := (*fullError)(nil); errors.As(err, &full) {
		if err = p.awaitPlace(ctx, profile.Share, full); err == nil {
			e, failing, err = p.enter(ctx, profile, private, true, client, dial)
		}
	}
	if err != nil {
		return nil, nil, p.refusal(err)
	}
	if err := e.await(ctx, failing); err != nil {
		p.leave(e)
		return nil, nil, p.refusal(err)
	}
	return e.s, func() { p.leave(e) }, nil
}

// await returns when the dial has ended. If failing is not nil, the server keeps failing: then
// await returns that error after upstream.MaxWait, and the dial goes on. That of a private
// session would not: it is waited for.
func (e *entry) await(ctx context.Context, failing error) error {
	if e.opened() {
		return e.err
	}
	var late <-chan time.Time
	if failing != nil && !e.private {
		t := time.NewTimer(upstream.MaxWait)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-e.ready:
		return e.err
	case <-late:
		return notSent(failing)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// notSent returns the failure of a request for which there is no session.
func notSent(why error) error {
	return &upstream.Failure{Cause: transport.Cause(why), Fate: upstream.NotSent}
}

// opened reports whether the dial has ended.
func (e *entry) opened() bool { return wake.Closed(e.ready) }

func (p *Pool) useLocked(e *entry) {
	if e.uses++; e.uses == 1 {
		p.idle.Remove(e)
	}
}

// leave ends one use of e.
func (p *Pool) leave(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.uses--
	switch {
	case e.uses > 0 || e.ended:
	case e.opened():
		p.idleLocked(e)
	case e.private:
		p.stops[e](errUnwanted) // there can be no other user
	}
}

// Sessions returns the open sessions of a scope and its lanes, or of all scopes if scope is
// empty.
func (p *Pool) Sessions(scope string) []Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Session
	for e := range p.all {
		if own, _ := CutLane(e.scope); (own == scope || scope == allScopes) && e.opened() && e.err == nil {
			out = append(out, e.s)
		}
	}
	return out
}

// Len returns the number of open sessions.
func (p *Pool) Len() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := range p.all {
		if e.opened() && e.err == nil {
			n++
		}
	}
	return n
}

// Go runs f on a goroutine that Close waits for.
func (p *Pool) Go(f func()) { p.running.Go(f) }
