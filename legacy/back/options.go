package back

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/legacy/poll"
)

// DefaultIdle is how long an unused session lasts.
const DefaultIdle = 5 * time.Minute

// Options describe one legacy server and how it is used.
type Options struct {
	upstream.Options // with URL

	// Exactly one of URL, Dial and Launcher says how the server is reached.

	// Transport is the transport for URL. Empty means Streamable HTTP, or HTTP+SSE if the
	// server refuses that with 400, 404 or 405.
	Transport Transport
	// Dial opens a connection of messages, for example a pipe. Each call returns a new
	// connection, which the Back closes. ctx bounds the opening, not the connection.
	Dial func(ctx context.Context) (transport.Conn, error)
	// Launcher starts the processes of a command. Each process has one session. No more
	// processes run than are in use.
	Launcher *transport.Launcher

	// What the server gets to know.

	// Roots are the roots for the server instead of each client's own, an array as in the
	// result of roots/list. Nil means each client's own.
	Roots json.RawMessage
	// OneClient says that there is only one client: its last roots are used if it can't be
	// asked. With several clients these might be those of another client.
	OneClient bool
	// Lanes bounds the sessions of one profile for calls that may request input, if
	// nothing tells for which call the server requests it. Zero means 4 for a URL and
	// otherwise 1, because each process of a command has a state of its own.
	Lanes int
	// KeepLane makes a call keep its lane while its client handles an input request.
	KeepLane bool

	// Limits. Zero means the default; a negative value is an error.

	// Idle is how long an unused session lasts.
	Idle time.Duration
	// MaxSessions bounds the open sessions, MaxSessionsEach those of one share. A
	// MaxSessionsEach of zero means no bound; otherwise a session never ends in favor of
	// another share.
	MaxSessions, MaxSessionsEach int

	// Synthesize configures how often the Back polls for changes.
	Synthesize Synthesize
	// Cache has the cache hints of complete results by method. Results of other methods
	// must not be cached.
	Cache map[string]mcp.CacheHint
}

// Synthesize configures how often the Back polls for changes that a server does not
// report.
type Synthesize = poll.Intervals

// A Transport is a transport for a URL.
type Transport string

// The transports.
const (
	TransportHTTP Transport = "http" // Streamable HTTP
	TransportSSE  Transport = "sse"  // HTTP+SSE, of 2024-11-05
)

// fault returns the first fault in the options of this era, or "".
func (o *Options) fault() string {
	switch {
	case o.ways() != 1:
		return "want exactly one of URL, Dial and Launcher"
	case o.Synthesize.Negative():
		return "negative interval in Synthesize"
	case o.Idle < 0, o.MaxSessions < 0, o.MaxSessionsEach < 0, o.Lanes < 0:
		return "negative limit"
	case o.Transport != "" && o.Transport != TransportHTTP && o.Transport != TransportSSE:
		return fmt.Sprintf("unknown Transport %q", o.Transport)
	}
	return ""
}

// ways returns how many of URL, Dial and Launcher are set.
func (o *Options) ways() (n int) {
	for _, given := range []bool{o.URL != "", o.Dial != nil, o.Launcher != nil} {
		if given {
			n++
		}
	}
	return n
}

// fill sets defaults.
func (o *Options) fill() {
	o.Fill(spec.Legacy)
	o.Idle = cmp.Or(o.Idle, DefaultIdle)
	o.MaxSessions = cmp.Or(o.MaxSessions, int(limits.Sessions.Default))
	if o.Lanes == 0 {
		o.Lanes = 1
		if o.URL != "" {
			o.Lanes = 4
		}
	}
}
