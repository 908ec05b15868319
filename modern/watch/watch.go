package watch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/subscribe"
)

// Defaults of Options that nothing else sets.
const (
	defaultLinger  = 2 * time.Second
	defaultGather  = 5 * time.Millisecond
	defaultSettle  = 2 * time.Second
	defaultOverlap = 500 * time.Millisecond
)

// watchRetries are the pauses before another try.
var watchRetries = backoff.Backoff{Min: 250 * time.Millisecond, Max: 10 * time.Second}

// Options say what the watches of one upstream stand on. Durations have the
// default when zero.
type Options struct {
	Name string // the server's, for people

	// Open opens a listen stream for want and returns once the server has acknowledged
	// it. ctx bounds the opening only. The error has a [*wire.Error] in its chain if the
	// server refused, and only then. Required.
	Open func(ctx context.Context, p mcp.Profile, want mcp.Filter) (Stream, error)
	// Single: the server bears one listen stream at a time, as some do that share a
	// connection (L2M-22).
	Single bool

	Changes mcp.Changes
	Metrics Metrics
	Logger  *slog.Logger

	Subresources fanout.Subresources
	Rate         int             // as subscribe.AllowanceOptions has it
	Linger       time.Duration   // how long a topic outlives the last who wanted it
	Gather       time.Duration   // how long topics are gathered into one stream
	Settle       time.Duration   // after the last new stream, before streams are merged
	Overlap      time.Duration   // how long merged streams are read on
	Retry        backoff.Backoff // the pauses before another try
}

// Metrics counts what was left out; see Options of the back.
type Metrics interface {
	Dropped(upstream, what string)
	Limit(upstream, name string)
}

// ErrEnded says that the server ended a listen stream gracefully.
var ErrEnded = errors.New("the server ended the stream")

// A Stream is one open subscriptions/listen upstream, acknowledged. Next is called by one
// goroutine at a time; Close may be called by another, and again.
type Stream interface {
	// Honored returns the filter that the server acknowledged.
	Honored() mcp.Filter
	// Next returns the next change, its topic in the profile's scope with the URI as it
	// was sent. It blocks until there is one. It returns ErrEnded once the server has
	// ended the stream gracefully, and another error if the stream broke or was closed;
	// then it goes on returning the same.
	Next() (fanout.Event, error)
	// Close ends the stream upstream and releases what it holds.
	Close()
}

// noMetrics counts nothing.
type noMetrics struct{}

func (noMetrics) Dropped(string, string) {}
func (noMetrics) Limit(string, string)   {}

// noChanges is told of changes where nobody is: nothing is wanted.
type noChanges struct{}

func (noChanges) Publish(fanout.Event)     {}
func (noChanges) Wanted(fanout.Topic) bool { return false }
func (noChanges) End(fanout.Topic, error)  {}

func (o *Options) fill() {
	o.Linger = cmp.Or(o.Linger, defaultLinger)
	o.Gather = cmp.Or(o.Gather, defaultGather)
	o.Settle = cmp.Or(o.Settle, defaultSettle)
	o.Overlap = cmp.Or(o.Overlap, defaultOverlap)
	o.Retry = cmp.Or(o.Retry, watchRetries)
	o.Subresources = cmp.Or(o.Subresources, fanout.SubresourcesParent)
	if o.Changes == nil {
		o.Changes = noChanges{}
	}
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Watches holds the watches of one upstream, at most one per profile. Each lives
// while something of its profile is wanted.
type Watches struct {
	opts Options // read-only

	allowances *subscribe.Allowances // of those who cause requests to the upstream

	// reached is set once the server acknowledged or refused a listen: it exists, so
	// when it is away it is worth waiting for.
	reached atomic.Bool

	// A Watch for which no stream can be had fails: at once if the server was never
	// reached, else after subscribe.Patience.
	*subscribe.Table[*watch]
}

// New returns the watches of an upstream. None is begun yet.
func New(opts Options) *Watches {
	opts.fill()
	ws := &Watches{opts: opts}
	ws.allowances = subscribe.NewAllowances(subscribe.AllowanceOptions{
		Rate:   opts.Rate,
		Limit:  func(name string) { opts.Metrics.Limit(opts.Name, name) },
		Logger: opts.Logger,
	})
	ws.Table = subscribe.NewTable(opts.Name, func(p mcp.Profile) *watch { return newWatch(ws, p) })
	return ws
}
