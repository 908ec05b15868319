package modern

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

// Defaults of watchOptions that nothing else sets.
const (
	defaultGather   = 5 * time.Millisecond
	defaultSettle   = 2 * time.Second
	defaultOverlap  = 500 * time.Millisecond
	defaultRetryMin = 250 * time.Millisecond
	defaultRetryMax = 10 * time.Second
)

// errWatchesClosed is why a Watch fails once the Back is closed.
var errWatchesClosed = errors.New("the gateway is shutting down")

// watchOptions say what the watches of one upstream stand on. Durations have the
// default when zero.
type watchOptions struct {
	name string // the server's, for people

	// open opens a listen stream, see [Back.openListen]. ctx bounds the opening.
	open func(ctx context.Context, p exchange.Profile, want exchange.Filter) (listenStream, error)
	// single: the server bears one listen stream at a time, as some do that share a
	// connection (L2M-22).
	single bool

	changes exchange.Changes
	metrics BackMetrics
	logger  *slog.Logger

	subresources fanout.Subresources
	linger       time.Duration // how long a topic outlives the last who wanted it
	gather       time.Duration // how long topics are gathered into one stream
	settle       time.Duration // after the last new stream, before streams are merged
	overlap      time.Duration // how long merged streams are read on
	retryMin     time.Duration // before the first try again
	retryMax     time.Duration // the most between tries
}

func (o *watchOptions) fill() {
	o.linger = cmp.Or(o.linger, DefaultLinger)
	o.gather = cmp.Or(o.gather, defaultGather)
	o.settle = cmp.Or(o.settle, defaultSettle)
	o.overlap = cmp.Or(o.overlap, defaultOverlap)
	o.retryMin = cmp.Or(o.retryMin, defaultRetryMin)
	o.retryMax = cmp.Or(o.retryMax, defaultRetryMax)
	o.subresources = cmp.Or(o.subresources, fanout.SubresourcesParent)
	if o.changes == nil {
		o.changes = noChanges{}
	}
	if o.metrics == nil {
		o.metrics = noBackMetrics{}
	}
	if o.logger == nil {
		o.logger = slog.New(slog.DiscardHandler)
	}
}

// watches holds the watches of one upstream, at most one per profile. Each lives
// while something of its profile is wanted.
type watches struct {
	opts watchOptions // read-only

	// reached is set once the server acknowledged or refused a listen: it exists, so
	// when it is away it is worth waiting for.
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

// watch is Source.Watch. A Watch for which no stream can be had fails with an error
// that names the server: at once if the server was never reached, else after
// settleWithin.
func (ws *watches) watch(ctx context.Context, p exchange.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	if len(want) == 0 {
		return nil, func() {}, nil
	}
	q := newWatchQuery(want)
	for {
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

// remove takes a watch off the table, before its done is closed: who finds done
// closed will not find the watch again.
func (ws *watches) remove(w *watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.open[w.profile.Scope] == w {
		delete(ws.open, w.profile.Scope)
	}
}

// close ends all watches with their streams, and waits for them.
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
