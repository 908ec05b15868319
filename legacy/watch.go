package legacy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// DefaultUnreachable is how long streams stay open over a server that is away.
const DefaultUnreachable = 2 * time.Minute

// Defaults of watchOptions that nothing else sets.
const (
	defaultRetryMin = 100 * time.Millisecond
	defaultRetryMax = 5 * time.Second
	defaultParallel = 32
)

// errWatchesClosed is why a Watch fails once the Back is closed.
var errWatchesClosed = errors.New("the gateway is shutting down")

// watched is what a watch needs of the profile's session. Methods are safe for
// concurrent use.
type watched interface {
	// subscribe sends resources/subscribe and waits for the answer. It returns a
	// *wire.Error if the server refused, and any other error if the outcome is
	// not known.
	subscribe(ctx context.Context, uri string) error
	// unsubscribe is the same for resources/unsubscribe.
	unsubscribe(ctx context.Context, uri string) error
	// watchList has the session look for changes of a list, for those that offers
	// says are looked at. It fails as subscribe does.
	watchList(ctx context.Context, k fanout.Kind) error
	// unwatchList undoes it.
	unwatchList(k fanout.Kind)
	// offers tells what the server declared and whether it could tell of changes
	// at this moment. What it says of the channel is so before the watch is told.
	offers() offers
	// done is closed when the session is lost or ended. Calls end then, too.
	done() <-chan struct{}
}

// offers is what changes a session can report.
type offers struct {
	tools, prompts, resources bool // listChanged was declared
	subscribe                 bool // resources.subscribe was declared
	// channel: a way for messages that answer nothing is open. Over stdio it
	// always is, over HTTP it is the GET stream.
	channel bool
	polls   kinds // of whose changes the gateway finds out by itself
}

// kinds is a set of kinds of change.
type kinds uint8

func (ks kinds) has(k fanout.Kind) bool { return ks&(1<<k) != 0 }

func (ks kinds) with(k fanout.Kind) kinds { return ks | 1<<k }

// list reports whether changes of a list can be reported, once there is a way.
func (o offers) list(k fanout.Kind) bool {
	switch k {
	case fanout.ToolsListChanged:
		return o.tools
	case fanout.PromptsListChanged:
		return o.prompts
	case fanout.ResourcesListChanged:
		return o.resources
	}
	return false
}

// watchOptions say what the watches of one upstream stand on. Durations and
// numbers have the default when zero.
type watchOptions struct {
	name string // the server's, for people

	// hold gives the profile's session, opening one if need be. The session is
	// not idle until release is called.
	hold func(ctx context.Context, p exchange.Profile) (s watched, release func(), err error)

	changes exchange.Changes
	metrics Metrics
	logger  *slog.Logger

	subresources Subresources
	linger       time.Duration // how long a subscription outlives its last stream
	unreachable  time.Duration // how long streams outlive their server
	request      time.Duration // one subscribe or unsubscribe call
	retryMin     time.Duration // before the first try again
	retryMax     time.Duration // the most between tries
	parallel     int           // calls on their way at a time
}

func (o *watchOptions) fill() {
	o.linger = cmp.Or(o.linger, DefaultLinger)
	o.unreachable = cmp.Or(o.unreachable, DefaultUnreachable)
	o.request = cmp.Or(o.request, DefaultRequestTimeout)
	o.retryMin = cmp.Or(o.retryMin, defaultRetryMin)
	o.retryMax = cmp.Or(o.retryMax, defaultRetryMax)
	o.parallel = cmp.Or(o.parallel, defaultParallel)
	o.subresources = cmp.Or(o.subresources, SubresourcesParent)
	if o.changes == nil {
		o.changes = noChanges{}
	}
	if o.metrics == nil {
		o.metrics = noMetrics{}
	}
	if o.logger == nil {
		o.logger = slog.New(slog.DiscardHandler)
	}
}

// noChanges is told of changes where nobody is: nothing is wanted.
type noChanges struct{}

func (noChanges) Publish(fanout.Event)     {}
func (noChanges) Wanted(fanout.Topic) bool { return false }
func (noChanges) End(fanout.Topic, error)  {}

// watches holds the watches of one upstream, at most one per profile. Each lives
// while something of its profile is wanted.
type watches struct {
	opts watchOptions // read-only

	// reached is set once a session was held: the upstream exists, so when it is
	// away it is worth waiting for.
	reached atomic.Bool

	// mu guards open. It is held for map work only, and taken under no other.
	mu   sync.Mutex
	open map[string]*watch // by scope; nil after close

	running sync.WaitGroup // counts the loops
}

func newWatches(opts watchOptions) *watches {
	opts.fill()
	return &watches{opts: opts, open: make(map[string]*watch)}
}

// watch is Source.Watch. A Watch whose session can't be had fails with an error
// that names the server: at once if the server was never reached, else after
// settleWithin.
func (ws *watches) watch(ctx context.Context, p exchange.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	if len(want) == 0 {
		return nil, func() {}, nil
	}
	for {
		q := newWatchQuery(want)
		w, admitted, err := ws.join(p, q)
		if err != nil {
			return nil, nil, fmt.Errorf("watching %s: %w", ws.opts.name, err)
		}
		if admitted {
			return w.await(ctx, q)
		}
		select {
		case w.queries <- q:
			return w.await(ctx, q)
		case <-w.done: // it ended for want of topics; another takes over
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// join returns the watch of the profile. If there is none it starts one, with q
// for its first query.
func (ws *watches) join(p exchange.Profile, q *watchQuery) (w *watch, admitted bool, err error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.open == nil {
		return nil, false, errWatchesClosed
	}
	if w := ws.open[p.Scope]; w != nil {
		return w, false, nil
	}
	w = newWatch(ws, p)
	ws.open[p.Scope] = w
	// Ends when nothing is wanted any more, or by close.
	ctx, stop := context.WithCancelCause(context.Background())
	w.stop = stop
	ws.running.Go(func() { w.run(ctx, q) })
	return w, true, nil
}

// of returns the watch of a scope, or nil. The methods that sessions call do
// nothing on nil.
func (ws *watches) of(scope string) *watch {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.open[scope]
}

// remove takes a watch off the table, before its done is closed: who finds done
// closed will not find the watch again.
func (ws *watches) remove(w *watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.open[w.profile.Scope] == w {
		delete(ws.open, w.profile.Scope)
	}
}

// close ends all watches and waits for them. Upstream subscriptions are left to
// the end of their sessions.
func (ws *watches) close() {
	ws.mu.Lock()
	open := ws.open
	ws.open = nil
	ws.mu.Unlock()
	for _, w := range open {
		w.stop(errWatchesClosed)
	}
	ws.running.Wait()
}
