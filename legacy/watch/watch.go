package watch

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

// Defaults of Options.
const (
	DefaultLinger      = 2 * time.Second
	DefaultUnreachable = 2 * time.Minute
	DefaultRequest     = 60 * time.Second
	defaultParallel    = 32
)

// Metrics counts what was left out; see Options of the back.
type Metrics interface {
	Dropped(upstream, what string)
	Limit(upstream, name string)
}

// Session is what a watch needs of the profile's session. Methods are safe for
// concurrent use.
type Session interface {
	// Subscribe sends resources/subscribe and waits for the answer. It returns a
	// *wire.Error if the server refused, and any other error if the outcome is
	// not known.
	Subscribe(ctx context.Context, uri string) error
	// Unsubscribe is the same for resources/unsubscribe.
	Unsubscribe(ctx context.Context, uri string) error
	// WatchList has the session look for changes of a list, for those that Offers
	// says are looked at. It fails as Subscribe does.
	WatchList(ctx context.Context, k fanout.Kind) error
	// UnwatchList undoes it.
	UnwatchList(k fanout.Kind)
	// Offers tells what the server declared and whether it could tell of changes
	// at this moment. What it says of the channel is so before the watch is told.
	Offers() Offers
	// Done is closed when the session is lost or ended. Calls end then, too.
	Done() <-chan struct{}
}

// Offers is what changes a session can report.
type Offers struct {
	Tools, Prompts, Resources bool // listChanged was declared
	Subscribe                 bool // resources.subscribe was declared
	// Channel: a way for messages that answer nothing is open. Over stdio it
	// always is, over HTTP it is the GET stream.
	Channel bool
	Polls   Kinds // of whose changes the gateway finds out by itself
}

// Kinds is a set of kinds of change.
type Kinds uint8

// Has reports whether a kind is in the set.
func (ks Kinds) Has(k fanout.Kind) bool { return ks&(1<<k) != 0 }

// With returns the set with a kind.
func (ks Kinds) With(k fanout.Kind) Kinds { return ks | 1<<k }

// List reports whether changes of a list can be reported, once there is a way.
func (o Offers) List(k fanout.Kind) bool {
	switch k {
	case fanout.ToolsListChanged:
		return o.Tools
	case fanout.PromptsListChanged:
		return o.Prompts
	case fanout.ResourcesListChanged:
		return o.Resources
	}
	return false
}

// watchRetries are the pauses before another try.
var watchRetries = backoff.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}

// Options say what the watches of one upstream stand on. Durations and
// numbers have the default when zero.
type Options struct {
	Name string // the server's, for people

	// Hold gives the profile's session, opening one if need be. The session is
	// not idle until release is called.
	Hold func(ctx context.Context, p mcp.Profile) (s Session, release func(), err error)

	Changes mcp.Changes
	Metrics Metrics
	Logger  *slog.Logger

	Subresources fanout.Subresources
	Rate         int             // as subscribe.AllowanceOptions has it
	Linger       time.Duration   // how long a subscription outlives its last stream
	Unreachable  time.Duration   // how long streams outlive their server
	Request      time.Duration   // one subscribe or unsubscribe call
	Retry        backoff.Backoff // the pauses before another try
	Parallel     int             // calls on their way at a time
}

func (o *Options) fill() {
	o.Linger = cmp.Or(o.Linger, DefaultLinger)
	o.Unreachable = cmp.Or(o.Unreachable, DefaultUnreachable)
	o.Request = cmp.Or(o.Request, DefaultRequest)
	o.Retry = cmp.Or(o.Retry, watchRetries)
	o.Parallel = cmp.Or(o.Parallel, defaultParallel)
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

// noMetrics counts nothing.
type noMetrics struct{}

func (noMetrics) Dropped(string, string) {}
func (noMetrics) Limit(string, string)   {}

// noChanges is told of changes where nobody is: nothing is wanted.
type noChanges struct{}

func (noChanges) Publish(fanout.Event)     {}
func (noChanges) Wanted(fanout.Topic) bool { return false }
func (noChanges) End(fanout.Topic, error)  {}

// Watches holds the watches of one upstream, at most one per profile. Each lives
// while something of its profile is wanted.
type Watches struct {
	opts Options // read-only

	allowances *subscribe.Allowances // of those who cause requests to the upstream

	// reached is set once a session was held: the upstream exists, so when it is
	// away it is worth waiting for.
	reached atomic.Bool

	// A Watch whose session can't be had fails: at once if the server was never
	// reached, else after subscribe.Patience.
	*subscribe.Table[*Watch]
}

// New returns the watches of an upstream, of which there are none.
func New(opts Options) *Watches {
	opts.fill()
	ws := &Watches{opts: opts}
	ws.allowances = subscribe.NewAllowances(subscribe.AllowanceOptions{
		Rate:   opts.Rate,
		Limit:  func(name string) { opts.Metrics.Limit(opts.Name, name) },
		Logger: opts.Logger,
	})
	ws.Table = subscribe.NewTable(opts.Name, func(p mcp.Profile) *Watch { return newWatch(ws, p) })
	return ws
}
