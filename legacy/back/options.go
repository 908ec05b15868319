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

// DefaultIdle is how long an unused session is kept.
const DefaultIdle = 5 * time.Minute

// Options describe one upstream server and how to treat it.
type Options struct {
	// Of these URL is one way to the server.
	upstream.Options

	// Where the server is: exactly one of URL, Dial and Launcher.

	// Transport says how the server at URL is reached. Empty means Streamable HTTP,
	// and HTTP+SSE where the server refuses that with 400, 404 or 405.
	Transport Transport
	// Dial opens a connection of messages: a child process started, a pipe. Each
	// call gives a fresh one, which the Back closes. ctx bounds the opening, not
	// the connection.
	Dial func(ctx context.Context) (transport.Conn, error)
	// Launcher starts the processes of a command, each of which has one session. No
	// more of them run at a time than are in use.
	Launcher *transport.Launcher

	// What the server is told.

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

	// Idle is how long an unused session is kept.
	Idle time.Duration
	// MaxSessions bounds the sessions open at a time, MaxSessionsEach those of one
	// share. Zero of the second means no bound; where there is one, nobody's
	// sessions end to make room for another's.
	MaxSessions, MaxSessionsEach int

	// Synthesize says how often the Back looks for changes by itself.
	Synthesize Synthesize
	// Cache gives the hint for complete results per method; a missing method is
	// not to be cached.
	Cache map[string]mcp.CacheHint
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

// fault returns what is wrong with what this era alone has, "" for nothing.
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

// ways returns how many ways to the server are given.
func (o *Options) ways() (n int) {
	for _, given := range []bool{o.URL != "", o.Dial != nil, o.Launcher != nil} {
		if given {
			n++
		}
	}
	return n
}

// fill replaces zero values by their defaults.
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
