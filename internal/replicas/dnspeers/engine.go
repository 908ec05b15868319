package dnspeers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// Options configure an Engine.
type Options struct {
	Names []string // host:port each
	// Hello asks who is at an address.
	Hello func(ctx context.Context, addr string) (replicas.Replica, error)
	// Lookup returns the addresses of a host. Nil asks the system.
	Lookup   func(ctx context.Context, host string) ([]string, error)
	Logger   *slog.Logger
	Observer replicas.Observer
}

// An Engine implements replicas.Engine.
type Engine struct {
	opts   Options
	kick   wake.Signal
	ctx    context.Context // of the loop; ends by Close
	cancel context.CancelFunc
	done   chan struct{} // closed when the loop has returned
	view   atomic.Pointer[replicas.View]
	found  chan struct{} // closed once the names have the address of this replica

	mu      sync.Mutex // guards the fields below; never held while somebody is asked
	state   phase
	self    replicas.Replica
	members map[string]*heard // by instance, without this replica
	rounds  int               // of questions
	heard   time.Time         // when a name was looked up last
	away    time.Time
	changed chan struct{} // of the view
}

type phase int

const (
	created phase = iota
	joined
	closed
)

// heard is a replica that has answered.
type heard struct {
	replicas.Replica
	at time.Time
}

// Names splits a URL of names: dns:// and host:port, several by comma.
func Names(url string) ([]string, error) {
	text, ok := strings.CutPrefix(url, "dns://")
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if _, _, err := net.SplitHostPort(name); err != nil || !ok {
			return nil, errors.New("peers are not dns:// and the host:port of the replicas")
		}
		names = append(names, name)
	}
	return names, nil
}

// New returns an Engine that has not joined.
func New(o Options) *Engine {
	e := &Engine{opts: o, kick: wake.NewSignal(), done: make(chan struct{}), found: make(chan struct{}), members: make(map[string]*heard), changed: make(chan struct{})}
	if e.opts.Lookup == nil {
		e.opts.Lookup = net.DefaultResolver.LookupHost
	}
	e.opts.Logger = cmp.Or(e.opts.Logger, slog.New(slog.DiscardHandler))
	e.opts.Observer = cmp.Or[replicas.Observer](e.opts.Observer, replicas.Unobserved{})
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.view.Store(&replicas.View{Changed: e.changed})
	return e
}

// View is what was last heard.
func (e *Engine) View() *replicas.View { return e.view.Load() }

// Join begins to ask. The loop ends by Close.
func (e *Engine) Join(ctx context.Context, self replicas.Replica) error {
	e.mu.Lock()
	if e.state != created {
		e.mu.Unlock()
		return errors.New("joining the replicas: it was done before")
	}
	e.state, e.self = joined, self
	e.publishLocked(true)
	e.mu.Unlock()
	stop := context.AfterFunc(ctx, e.cancel)
	e.round(e.ctx)
	if !stop() {
		close(e.done)
		return fmt.Errorf("joining the replicas: %w", context.Cause(ctx))
	}
	go e.run(e.ctx)
	return nil
}

// AwaitFound returns once the names have the address of this replica, so that others find it.
// Call it after Join. It reports false if that takes longer than d, or ctx ends.
func (e *Engine) AwaitFound(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return wake.Await(ctx, e.found) == nil
}

// Update changes what is told of this replica: to those who ask.
func (e *Engine) Update(self replicas.Replica) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.self = self
	e.publishLocked(true)
}

// Leave does nothing: the address does not answer any more.
func (e *Engine) Leave(context.Context) error { return nil }

// Close ends the loop.
func (e *Engine) Close(context.Context) error {
	e.mu.Lock()
	was := e.state
	e.state = closed
	e.mu.Unlock()
	e.cancel()
	if was == joined {
		<-e.done
	}
	return nil
}

// Meet does nothing: replicas greet each other at all times.
func (e *Engine) Meet(replicas.Neighbors) {}

// TellFor says that there are no heartbeats.
func (e *Engine) TellFor(context.Context, string, []byte) error { return replicas.ErrNoClaims }

// Leased reports true: who serves what follows from who lives.
func (e *Engine) Leased() bool { return true }

// Teller returns none.
func (e *Engine) Teller() (replicas.Replica, bool) { return replicas.Replica{}, false }

// Inquire says that there are no claims.
func (e *Engine) Inquire(context.Context, string) error { return replicas.ErrNoClaims }

// Vacant implements [replicas.Engine].
func (e *Engine) Vacant(string) uint64 { return 0 }

// Holds says that there are no claims.
func (e *Engine) Holds(string) (uint64, error) { return 0, replicas.ErrNoClaims }

// Claim says that there are no claims: each replica does by itself.
func (e *Engine) Claim(context.Context, string) (replicas.Claim, error) {
	return replicas.Claim{}, replicas.ErrNoClaims
}

// Holder knows nobody.
func (e *Engine) Holder(string) (replicas.Claim, bool) { return replicas.Claim{}, false }

// Seize says that there are no claims.
func (e *Engine) Seize(context.Context, string, replicas.Claim) (replicas.Claim, error) {
	return replicas.Claim{}, replicas.ErrNoClaims
}

// Yield says that there are no claims.
func (e *Engine) Yield(context.Context, string, replicas.Replica) (replicas.Claim, error) {
	return replicas.Claim{}, replicas.ErrNoClaims
}

// Release does nothing.
func (e *Engine) Release(string) {}

// Put says that there are no records.
func (e *Engine) Put(context.Context, string, []byte, time.Duration) error {
	return replicas.ErrNoClaims
}

// Get says that there are no records.
func (e *Engine) Get(context.Context, string) ([]byte, error) { return nil, replicas.ErrNoClaims }

// Keep says that there are no records.
func (e *Engine) Keep(context.Context, string, string, []byte) (string, error) {
	return "", replicas.ErrNoClaims
}

// Kept says that there are no records.
func (e *Engine) Kept(context.Context, string) ([]byte, string, error) {
	return nil, "", replicas.ErrNoClaims
}

// EachKept says that there are no records.
func (e *Engine) EachKept(context.Context, func([]byte)) error { return replicas.ErrNoClaims }

// Discard says that there are no records.
func (e *Engine) Discard(context.Context, string) error { return replicas.ErrNoClaims }

// Take says that there are no records.
func (e *Engine) Take(context.Context, string) ([]byte, error) { return nil, replicas.ErrNoClaims }
