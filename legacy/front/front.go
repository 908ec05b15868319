package front

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/eventstream"
	"github.com/mcpbridge/mcpbridge/legacy/projection"
)

// Defaults of Options, but for limits that package limits declares.
const (
	// DefaultSessionIdle is how long an unused session lasts.
	DefaultSessionIdle  = 30 * time.Minute
	DefaultAskTimeout   = 10 * time.Minute
	DefaultWriteTimeout = 10 * time.Second
	DefaultKeepAlive    = 15 * time.Second
	DefaultDrain        = 5 * time.Second
	DefaultStartTimeout = time.Minute
)

const (
	// maxCalls bounds the requests in flight of one session.
	maxCalls = 1000
	// maxToolScopes bounds the scopes whose tools are cached.
	maxToolScopes = 1024
)

// Options configure a Front.
type Options struct {
	// Name is the server's name, for errors and logs, and for clients if the server has
	// none. Required.
	Name string
	// Handler serves requests, Describer answers initialize, Subscriber reports changes.
	// Required.
	Handler    mcp.Handler
	Describer  mcp.Describer
	Subscriber mcp.Subscriber
	// Relayer relays sessions to a server of the same era; nil if there is none.
	Relayer mcp.Relayer
	// Admit sets a request's profile, or refuses the request. Required.
	Admit func(*mcp.Request) error
	// Memory bounds the memory for clients. Nil means no bound.
	Memory mcp.Memory

	// Instance is the prefix of session ids and event ids, by which replicas can recognize
	// their own. Empty means a random one.
	Instance string

	// Limits bound the sessions over HTTP, what they subscribe to, and the events that they
	// store for clients that reconnect. At the limit on sessions, the Streamable HTTP session
	// that has been idle longest ends, of the same share first.
	Limits limits.Set
	// Idle is how long a session lasts without an open stream or a call in flight. Zero
	// means DefaultSessionIdle.
	Idle time.Duration
	// Clients is told what becomes of clients whose sessions are not relayed. Nil tells nobody.
	Clients mcp.ClientFollower
	// TellLosses has each session told by a log message when a server may have lost what it
	// had of its client, and of the log messages that servers send outside of calls; Clients
	// is told of log levels. It is for groups: other servers say so in results, and get the
	// level with a call.
	TellLosses bool
	// MarksTools says that lists of tools have execution where a client that holds tasks may call a tool
	// as one, and nowhere else. It is for groups: of other servers all tools may be.
	MarksTools bool
	// Check returns an error for a message of a batch that is not allowed. The caller has
	// checked single messages. Nil allows all.
	Check func(*wire.Message) error
	// AskTimeout bounds the wait for a client's responses to input requests that were sent
	// together, including time without a connection. Zero means DefaultAskTimeout.
	AskTimeout time.Duration
	// WriteTimeout bounds a write to a client; after that, its session ends. Zero means
	// DefaultWriteTimeout.
	WriteTimeout time.Duration
	// Streams serves GET streams and those of HTTP+SSE independently of their handlers,
	// which saves memory. Its owner waits for them before it closes the Front. Nil means
	// that handlers return when their streams have ended.
	Streams *downstream.Streams
	// Until calls end once when a credential expires or is refused, unless forget is
	// called before: streams end with the credential that opened them. Nil means that
	// credentials don't expire.
	Until func(id *mcp.Identity, end func(reason error)) (forget func())
	// KeepAlive is the interval of comments on an idle stream. Zero means
	// DefaultKeepAlive.
	KeepAlive time.Duration
	// Drain bounds the wait for calls in flight when a stream of HTTP+SSE ends. Zero means
	// DefaultDrain.
	Drain time.Duration
	// Settings are what is to be heeded on the way to the server. A Timeouts.Connect of zero
	// means DefaultStartTimeout, for an initialize that waits for a server which is starting.
	Settings settings.Server

	// Ended is told of each session that has ended. Nil tells nobody.
	Ended func(*Ended)

	Logger  *slog.Logger // nil discards
	Metrics mcp.Metrics  // nil counts nothing
	// Quirks say what clients may do against the protocol, and are told that they did; nil
	// tolerates it untold.
	Quirks *quirks.Recorder
}

// A Front serves the legacy clients of one server.
type Front struct {
	opts   Options
	log    *slog.Logger
	limits *downstream.LimitLog                  // of what clients are refused
	tools  *lru.Cache[string, *projection.Tools] // by scope

	sessions *sessions
	streams  eventstream.Options // of every session

	// mu guards the fields below.
	mu     sync.Mutex
	conns  map[*Conn]struct{} // nil after Close
	events map[SessionID]*EventSession

	ending  chan struct{} // closed when GET streams have to end
	endOnce sync.Once
	why     error // set before ending is closed, and read-only after
}

// New returns a Front. It starts nothing.
func New(opts Options) (*Front, error) {
	if opts.Name == "" || opts.Handler == nil || opts.Describer == nil || opts.Subscriber == nil || opts.Admit == nil {
		return nil, errors.New("legacy/front: New: Name, Handler, Describer, Subscriber and Admit are required")
	}
	opts.fill()
	tools, err := lru.New[string, *projection.Tools](maxToolScopes)
	if err != nil {
		return nil, err
	}
	f := &Front{
		opts:   opts,
		log:    opts.Logger.With("upstream", opts.Name, "era", spec.Legacy.String()),
		tools:  tools,
		conns:  make(map[*Conn]struct{}),
		events: make(map[SessionID]*EventSession),
		ending: make(chan struct{}),
	}
	f.limits = downstream.NewLimitLog(opts.Name, opts.Metrics, f.log)
	f.sessions = newSessions(f)
	f.streams = eventstream.Options{
		Instance: opts.Instance, MaxStored: opts.Limits.Int(limits.ClientEvents), KeepAlive: opts.KeepAlive,
		Until: opts.Until, Ending: f.ending, Limit: f.limit, Logger: f.log,
	}
	return f, nil
}

// fill sets defaults.
func (o *Options) fill() {
	o.Instance = cmp.Or(o.Instance, rand.Text()[:8])
	o.Idle = cmp.Or(o.Idle, DefaultSessionIdle)
	if o.Check == nil {
		o.Check = func(*wire.Message) error { return nil }
	}
	if o.Until == nil {
		o.Until = func(*mcp.Identity, func(error)) func() { return func() {} }
	}
	o.AskTimeout = cmp.Or(o.AskTimeout, DefaultAskTimeout)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, DefaultWriteTimeout)
	o.KeepAlive = cmp.Or(o.KeepAlive, DefaultKeepAlive)
	o.Drain = cmp.Or(o.Drain, DefaultDrain)
	o.Settings.Timeouts.Connect = cmp.Or(o.Settings.Timeouts.Connect, DefaultStartTimeout)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = mcp.NoMetrics{}
	}
}

// EndStreams ends the GET streams, and refuses new ones. Calls in flight continue; those
// of HTTP+SSE, whose responses need the stream, continue for Drain. why is what clients and the
// log are told; only the first one counts.
func (f *Front) EndStreams(why error) {
	f.endOnce.Do(func() { f.why = why; close(f.ending) })
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.events {
		s.finish(eventstream.ErrEnding)
	}
	f.sessions.tellEnding()
}

func (f *Front) isEnding() bool { return wake.Closed(f.ending) }

// over is why the Front has ended, or is about to.
func (f *Front) over() error {
	if f.isEnding() {
		return f.why
	}
	return mcp.ErrShutdown
}

// Close ends all sessions and connections, and waits for their goroutines. ctx bounds the
// wait.
func (f *Front) Close(ctx context.Context) error {
	f.EndStreams(mcp.ErrShutdown)
	f.mu.Lock()
	conns := f.conns
	f.conns = nil
	f.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends when all calls have; ctx bounds only the wait
		defer close(done)
		for p := range conns {
			p.Close()
		}
		f.sessions.close()
	}()
	return wake.Await(ctx, done)
}

// Sessions returns the number of sessions over HTTP.
func (f *Front) Sessions() int { return f.sessions.size() }

// toolsOf returns the cached tools of a scope.
func (f *Front) toolsOf(scope string, marked bool) *projection.Tools {
	if marked {
		scope += " marked" // no scope ends so
	}
	if t, ok := f.tools.Get(scope); ok {
		return t
	}
	t := projection.NewTools()
	t.Marked = marked
	t.LeftOut = func(tool, reason string) { f.log.Warn("tool left out", "tool", tool, "reason", reason) }
	if former, ok, _ := f.tools.PeekOrAdd(scope, t); ok {
		return former
	}
	return t
}

// drop counts a client's message that is not delivered.
func (f *Front) drop(reason string) { f.opts.Metrics.Dropped(f.opts.Name, reason) }

// limit counts a request that was refused, or a stream or session that ended, because of a
// limit.
func (f *Front) limit(name string) { f.opts.Metrics.Limit(f.opts.Name, name) }
