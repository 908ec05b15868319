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
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/projection"
)

// Defaults of Options, but for limits that package limits declares.
const (
	DefaultSessionIdle  = 30 * time.Minute
	DefaultAskTimeout   = 10 * time.Minute
	DefaultWriteTimeout = 10 * time.Second
	DefaultKeepAlive    = 15 * time.Second
	DefaultDrain        = 5 * time.Second
	DefaultStartTimeout = time.Minute
)

const (
	// maxCalls bounds the requests of one session that are in flight.
	maxCalls = 1000
	// maxToolScopes bounds the scopes of which the shapes of tools are remembered.
	maxToolScopes = 1024
)

// Options configure a Front.
type Options struct {
	// Name is the server's, for errors and logs; it stands in for the name of a
	// server that gives none. Required.
	Name string
	// Handler serves requests, Describer says what initialize answers,
	// Subscriber tells of changes. Required.
	Handler    mcp.Handler
	Describer  mcp.Describer
	Subscriber mcp.Subscriber
	// Relayer links sessions with an upstream of the same era; nil if there is none.
	Relayer mcp.Relayer
	// Command says that each session upstream is a process. None is ended because another
	// principal wants one.
	Command bool
	// Admit puts a request into its profile, or refuses it. Required.
	Admit func(*mcp.Request) error
	// Memory is taken from for what is kept. Nil means that there is no bound.
	Memory mcp.Memory

	// Instance begins session ids and event ids, so that replicas can tell whose
	// they are. Empty means a random one.
	Instance string

	// MaxSessions bounds the sessions of clients over HTTP, MaxSessionsEach those of
	// one share. Past it the one over Streamable HTTP that has been idle longest ends,
	// of the same share first. Zero means the defaults of
	// limits.ClientSessions and limits.ClientSessionsEach.
	MaxSessions, MaxSessionsEach int
	// Idle is how long a session lasts that has no stream open and no call in
	// flight. Zero means DefaultDownstreamIdle.
	Idle time.Duration
	// MaxStored bounds the bytes of events that a session keeps for clients that
	// come back. Zero means the default of limits.ClientEvents.
	MaxStored int
	// MaxTopics bounds the resources that a session follows. Zero means the
	// default of limits.ListenTopics.
	MaxTopics int
	// Check refuses a message of a batch. Those that come by themselves have been
	// checked. Nil takes all.
	Check func(*wire.Message) error
	// AskTimeout bounds the wait for a client's answers to questions that were
	// asked together, time without a connection included. Zero means
	// DefaultAskTimeout.
	AskTimeout time.Duration
	// WriteTimeout is how long a write to a client may take before its session
	// counts as stuck. Zero means DefaultWriteTimeout.
	WriteTimeout time.Duration
	// Streams makes GET streams and those of HTTP+SSE independent of their handlers, and of
	// the memory that these take. Its owner waits for them before it closes the Front.
	// Nil means that handlers return when their streams have ended.
	Streams *downstream.Streams
	// Until has end called once when a credential expires or is refused, unless forget is
	// called before: streams end with the credential that they were opened with. Nil means
	// that credentials do not end.
	Until func(id *mcp.Identity, end func(reason error)) (forget func())
	// KeepAlive is the time between comments on a stream that has nothing else to
	// say. Zero means DefaultKeepAlive.
	KeepAlive time.Duration
	// Drain is how long calls in flight may take when the streams of HTTP+SSE end.
	// Zero means DefaultDrain.
	Drain time.Duration
	// StartTimeout bounds how long initialize waits for a server that starts. Zero means
	// DefaultStartTimeout.
	StartTimeout time.Duration
	// LogLevel is that of sessions that did not set one. Empty means no messages.
	LogLevel spec.LogLevel

	Logger  *slog.Logger // nil discards
	Metrics mcp.Metrics  // nil counts nothing
}

// A Front serves legacy clients of one server.
type Front struct {
	opts  Options
	log   *slog.Logger
	tools *lru.Cache[string, *projection.Tools] // by scope

	sessions *sessions

	// mu guards the fields below.
	mu     sync.Mutex
	conns  map[*Conn]struct{} // nil after Close
	events map[SessionID]*EventSession

	ending  chan struct{} // closed when GET streams have to end
	endOnce sync.Once
}

// New returns a Front. It starts nothing.
func New(opts Options) (*Front, error) {
	if opts.Name == "" || opts.Handler == nil || opts.Describer == nil || opts.Subscriber == nil || opts.Admit == nil {
		return nil, errors.New("legacy/front: New: name, handler, describer, roster and admit are required")
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
	f.sessions = newSessions(f)
	return f, nil
}

// fill replaces zero values by their defaults.
func (o *Options) fill() {
	o.Instance = cmp.Or(o.Instance, rand.Text()[:8])
	o.MaxSessions = cmp.Or(o.MaxSessions, int(limits.ClientSessions.Default))
	o.MaxSessionsEach = cmp.Or(o.MaxSessionsEach, int(limits.ClientSessionsEach.Default))
	o.Idle = cmp.Or(o.Idle, DefaultSessionIdle)
	o.MaxStored = cmp.Or(o.MaxStored, int(limits.ClientEvents.Default))
	o.MaxTopics = cmp.Or(o.MaxTopics, int(limits.ListenTopics.Default))
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
	o.StartTimeout = cmp.Or(o.StartTimeout, DefaultStartTimeout)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = mcp.NoMetrics{}
	}
}

// EndStreams ends the GET streams, and refuses new ones. Calls in flight go on; those
// of HTTP+SSE, whose answers come on the stream, for Drain.
func (f *Front) EndStreams() {
	f.endOnce.Do(func() { close(f.ending) })
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.events {
		s.finish(errEnding)
	}
}

func (f *Front) isEnding() bool { return wake.Closed(f.ending) }

// Close ends all sessions and connections, and waits for what runs for them. ctx bounds
// the wait.
func (f *Front) Close(ctx context.Context) error {
	f.EndStreams()
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

// toolsOf returns what is known of the tools of a scope.
func (f *Front) toolsOf(scope string) *projection.Tools {
	if t, ok := f.tools.Get(scope); ok {
		return t
	}
	t := projection.NewTools()
	t.LeftOut = func(tool, reason string) { f.log.Warn("tool left out", "tool", tool, "reason", reason) }
	if former, ok, _ := f.tools.PeekOrAdd(scope, t); ok {
		return former
	}
	return t
}

// drop counts a message of a client that is not delivered.
func (f *Front) drop(reason string) { f.opts.Metrics.Dropped(f.opts.Name, reason) }

// limit counts a request refused, or a stream or a session ended, at a limit.
func (f *Front) limit(name string) { f.opts.Metrics.Limit(f.opts.Name, name) }
