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

// DefaultUnreachable is how long streams stay open over a server that is away.
const DefaultUnreachable = 2 * time.Minute

// Defaults of watchOptions that nothing else sets.
const (
	defaultParallel = 32
)

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

// watchRetries are the pauses before another try.
var watchRetries = backoff.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}

// watchOptions say what the watches of one upstream stand on. Durations and
// numbers have the default when zero.
type watchOptions struct {
	name string // the server's, for people

	// hold gives the profile's session, opening one if need be. The session is
	// not idle until release is called.
	hold func(ctx context.Context, p mcp.Profile) (s watched, release func(), err error)

	changes mcp.Changes
	metrics Metrics
	logger  *slog.Logger

	subresources Subresources
	rate         int             // as subscribe.AllowanceOptions has it
	linger       time.Duration   // how long a subscription outlives its last stream
	unreachable  time.Duration   // how long streams outlive their server
	request      time.Duration   // one subscribe or unsubscribe call
	retry        backoff.Backoff // the pauses before another try
	parallel     int             // calls on their way at a time
}

func (o *watchOptions) fill() {
	o.linger = cmp.Or(o.linger, DefaultLinger)
	o.unreachable = cmp.Or(o.unreachable, DefaultUnreachable)
	o.request = cmp.Or(o.request, DefaultRequestTimeout)
	o.retry = cmp.Or(o.retry, watchRetries)
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

	allowances *subscribe.Allowances // of those who cause requests to the upstream

	// reached is set once a session was held: the upstream exists, so when it is
	// away it is worth waiting for.
	reached atomic.Bool

	// A Watch whose session can't be had fails: at once if the server was never
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
