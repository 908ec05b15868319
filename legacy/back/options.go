package back

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/legacy/poll"
)

// DefaultIdle is how long an unused session is kept.
const DefaultIdle = 5 * time.Minute

// Options describe one upstream server and how to treat it.
type Options struct {
	// Name is the server's name in the configuration: it stands in every message
	// to people and in every error. Required.
	Name string

	// Where the server is: exactly one of URL, Dial and Launcher.

	// URL is the server's MCP endpoint over Streamable HTTP.
	URL string
	// Headers go with every HTTP request, credentials among them. They can't
	// replace the headers the protocol defines.
	Headers http.Header
	// Transport says how the server at URL is reached. Empty means Streamable HTTP,
	// and HTTP+SSE where the server refuses that with 400, 404 or 405.
	Transport Transport
	// RoundTripper sends HTTP requests; nil means a transport of the Back's own.
	// It must not follow redirects: credentials go to URL's origin alone.
	RoundTripper http.RoundTripper
	// Dial opens a connection of messages: a child process started, a pipe. Each
	// call gives a fresh one, which the Back closes. ctx bounds the opening, not
	// the connection.
	Dial func(ctx context.Context) (transport.Conn, error)
	// Launcher starts the processes of a command, each of which has one session. No
	// more of them run at a time than are in use.
	Launcher *transport.Launcher

	// What the server is told.

	// ClientInfo is the gateway's own name and version, an Implementation object.
	// Required.
	ClientInfo json.RawMessage
	// HideExtensions are names of extensions and experimental capabilities that
	// cross in neither direction.
	HideExtensions []string

	// Roots are the roots that every client has for this server, an array as in
	// the result of roots/list. Nil means each client's own.
	Roots json.RawMessage
	// OneClient says that there is one client alone: what it answered to roots/list stands
	// for it where it can't be asked. Else that would be given for another client.
	OneClient bool
	// Lanes bounds the sessions of one profile for calls that may be asked back,
	// where nothing tells which call the server asks for. Zero means 4 for a URL and 1
	// otherwise: a second child has a state of its own.
	Lanes int
	// KeepLane makes a call keep its lane while its client is being asked.
	KeepLane bool

	// How long and how much. Zero means the default; negative is an error.

	Timeouts Timeouts
	// Idle is how long an unused session is kept.
	Idle time.Duration
	// Linger is how long an upstream subscription outlives its last subscriber.
	Linger time.Duration
	// Subscribes is how many subscribes a second, and as many unsubscribes, each
	// share may cause in the long run. Those of 10 s may come at once. Zero means the
	// default of limits.SubscribesEach.
	Subscribes int
	// MaxSessions bounds the sessions open at a time, MaxSessionsEach those of one
	// share. Zero of the second means no bound; where there is one, nobody's
	// sessions end to make room for another's.
	MaxSessions, MaxSessionsEach int
	// MaxMessage bounds one message of the server, in bytes.
	MaxMessage int

	// Subresources says what becomes of an update for a URI below a subscribed
	// one. Empty means [SubresourcesParent].
	Subresources Subresources
	// Synthesize says how often the Back looks for changes by itself.
	Synthesize Synthesize
	// Cache gives the hint for complete results per method; a missing method is
	// not to be cached.
	Cache map[string]mcp.CacheHint

	// Whom the Back tells.

	Logger  *slog.Logger // nil discards
	Metrics Metrics      // nil counts nothing
	Changes mcp.Changes  // nil tells nobody of changes
	// Doubt is called when the server may have become one of the other era: it
	// refused the handshake or left it unanswered, lost a session, or answered with
	// an error of that era. It must not block; nil means nobody
	// wants to know.
	Doubt func(why string)
}

// Synthesize says how often to look for changes that a server does not tell of.
type Synthesize = poll.Intervals

// A Transport is one of those that begin with a URL.
type Transport string

// The transports.
const (
	TransportHTTP Transport = "http" // Streamable HTTP
	TransportSSE  Transport = "sse"  // HTTP+SSE, of 2024-11-05
)

// Timeouts bound the waiting for a server; see [upstream.Timeouts].
type Timeouts = upstream.Timeouts

// Subresources says what becomes of an update for a URI to which nobody
// subscribed, below one to which somebody did.
type Subresources = fanout.Subresources

// The values of Subresources.
const (
	SubresourcesParent = fanout.SubresourcesParent
	SubresourcesAsSent = fanout.SubresourcesAsSent
	SubresourcesOff    = fanout.SubresourcesOff
)

// Metrics counts what a Back does; see [mcp.Metrics].
type Metrics = mcp.Metrics

// check reports the first fault of o.
func (o *Options) check() error {
	if err := o.shared().Check(); err != nil {
		return fmt.Errorf("legacy/back: New: %w", err)
	}
	switch {
	case o.ways() != 1:
		return fmt.Errorf("legacy/back: New: server %q: want exactly one of URL, Dial and Launcher", o.Name)
	case o.Synthesize.Negative():
		return fmt.Errorf("legacy/back: New: server %q: negative interval in Synthesize", o.Name)
	case o.Idle < 0, o.MaxSessions < 0, o.MaxSessionsEach < 0, o.Lanes < 0:
		return fmt.Errorf("legacy/back: New: server %q: negative limit", o.Name)
	}
	switch o.Transport {
	case "", TransportHTTP, TransportSSE:
		return nil
	}
	return fmt.Errorf("legacy/back: New: server %q: unknown Transport %q", o.Name, o.Transport)
}

// ways returns how many ways to the server are given.
func (o *Options) ways() (n int) {
	for _, given := range []bool{o.URL != "", o.Dial != nil, o.Launcher != nil} {
		if given {
			n++
		}
	}
	return n
}

// fill replaces zero values by their defaults, and returns what both eras know.
func (o *Options) fill() *upstream.Options {
	s := o.shared()
	s.Fill(spec.Legacy)
	o.Timeouts, o.Linger, o.MaxMessage, o.Subresources = s.Timeouts, s.Linger, s.MaxMessage, s.Subresources
	o.Logger, o.Metrics, o.Changes, o.Doubt = s.Logger, s.Metrics, s.Changes, s.Doubt
	o.Idle = cmp.Or(o.Idle, DefaultIdle)
	o.MaxSessions = cmp.Or(o.MaxSessions, int(limits.Sessions.Default))
	if o.Lanes == 0 {
		o.Lanes = 1
		if o.URL != "" {
			o.Lanes = 4
		}
	}
	return s
}

// shared returns what of o both eras know.
func (o *Options) shared() *upstream.Options {
	return &upstream.Options{
		Name: o.Name, URL: o.URL, Headers: o.Headers, RoundTripper: o.RoundTripper, ClientInfo: o.ClientInfo,
		Timeouts: o.Timeouts, Linger: o.Linger, Subscribes: o.Subscribes, MaxMessage: o.MaxMessage, Subresources: o.Subresources,
		Logger: o.Logger, Metrics: o.Metrics, Changes: o.Changes, Doubt: o.Doubt,
	}
}
