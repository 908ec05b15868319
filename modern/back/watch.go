package back

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

// Defaults of watchOptions that nothing else sets.
const (
	defaultGather  = 5 * time.Millisecond
	defaultSettle  = 2 * time.Second
	defaultOverlap = 500 * time.Millisecond
)

// watchRetries are the pauses before another try.
var watchRetries = backoff.Backoff{Min: 250 * time.Millisecond, Max: 10 * time.Second}

// watchOptions say what the watches of one upstream stand on. Durations have the
// default when zero.
type watchOptions struct {
	name string // the server's, for people

	// open opens a listen stream, see [Back.openListen]. ctx bounds the opening.
	open func(ctx context.Context, p mcp.Profile, want mcp.Filter) (listenStream, error)
	// single: the server bears one listen stream at a time, as some do that share a
	// connection (L2M-22).
	single bool

	changes mcp.Changes
	metrics Metrics
	logger  *slog.Logger

	subresources fanout.Subresources
	rate         int             // as subscribe.AllowanceOptions has it
	linger       time.Duration   // how long a topic outlives the last who wanted it
	gather       time.Duration   // how long topics are gathered into one stream
	settle       time.Duration   // after the last new stream, before streams are merged
	overlap      time.Duration   // how long merged streams are read on
	retry        backoff.Backoff // the pauses before another try
}

func (o *watchOptions) fill() {
	o.linger = cmp.Or(o.linger, DefaultLinger)
	o.gather = cmp.Or(o.gather, defaultGather)
	o.settle = cmp.Or(o.settle, defaultSettle)
	o.overlap = cmp.Or(o.overlap, defaultOverlap)
	o.retry = cmp.Or(o.retry, watchRetries)
	o.subresources = cmp.Or(o.subresources, fanout.SubresourcesParent)
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

// watches holds the watches of one upstream, at most one per profile. Each lives
// while something of its profile is wanted.
type watches struct {
	opts watchOptions // read-only

	allowances *subscribe.Allowances // of those who cause requests to the upstream

	// reached is set once the server acknowledged or refused a listen: it exists, so
	// when it is away it is worth waiting for.
	reached atomic.Bool

	// A Watch for which no stream can be had fails: at once if the server was never
	// reached, else after subscribe.Patience.
	*subscribe.Table[*watch]
}

func newWatches(opts watchOptions) *watches {
	opts.fill()
	ws := &watches{opts: opts}
	ws.allowances = subscribe.NewAllowances(subscribe.AllowanceOptions{
		Rate:   opts.rate,
		Limit:  func(name string) { opts.metrics.Limit(opts.name, name) },
		Logger: opts.logger,
	})
	ws.Table = subscribe.NewTable(opts.name, func(p mcp.Profile) *watch { return newWatch(ws, p) })
	return ws
}
