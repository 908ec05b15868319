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
	"github.com/mcpbridge/mcpbridge/internal/wire"
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
	// Eager has Dial called for each request that needs a session, also while it keeps failing,
	// since it starts nothing. Otherwise there are pauses, in which requests fail.
	Eager bool
	// Launcher starts the processes of a command. Each process has one session. No more
	// processes run than are in use.
	Launcher *transport.Launcher

	// OneClient says that there is only one client: its last roots are used if it can't be
	// asked. With several clients these might be those of another client.
	OneClient bool
	// ClientIdle is how long the process of a command lasts unused that has served more
	// than lists, since it may have state of its client; with OneClient it lasts until
	// Close. Less than Settings.Idle means that; a negative value is an error.
	ClientIdle time.Duration
	// MaxSessions bounds the open sessions, MaxSessionsEach those of one share. Zero means
	// the default of limits.Sessions; a negative value is an error. A MaxSessionsEach of zero
	// means no bound; otherwise a session never ends in favor of another share.
	MaxSessions, MaxSessionsEach int
}

// A Transport is a transport for a URL.
type Transport string

// The transports.
const (
	TransportHTTP Transport = "http" // Streamable HTTP
	TransportSSE  Transport = "sse"  // HTTP+SSE, of 2024-11-05
)

// fault returns the first fault in the options of this era, or "".
func (o *Options) fault() string {
	set := &o.Settings
	switch {
	case o.ways() != 1:
		return "want exactly one of URL, Dial and Launcher"
	case o.polls().Negative():
		return "negative interval in Synthesize"
	case set.Idle < 0, o.ClientIdle < 0, o.MaxSessions < 0, o.MaxSessionsEach < 0, set.Lanes.Stdio < 0, set.Lanes.HTTP < 0:
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
	o.Settings.Idle = cmp.Or(o.Settings.Idle, DefaultIdle)
	o.MaxSessions = cmp.Or(o.MaxSessions, int(limits.Sessions.Default))
}

// lanes returns how many sessions one profile has for calls that may request input, if
// nothing tells for which call the server requests it. Each process of a command has a state of
// its own.
func (o *Options) lanes() int {
	if o.URL != "" {
		return int(cmp.Or(o.Settings.Lanes.HTTP, 4))
	}
	return int(cmp.Or(o.Settings.Lanes.Stdio, 1))
}

// polls returns how often the Back polls for changes that the server does not report.
func (o *Options) polls() poll.Intervals { return poll.Intervals(o.Settings.Synthesize) }

// hint returns the cache hint of complete results of a method; zero for those that must not
// be cached.
func (o *Options) hint(method string) mcp.CacheHint {
	h := o.Settings.Cache[method]
	return mcp.CacheHint{TTL: h.TTL.Milliseconds(), Public: h.Public()}
}

// roots returns the roots for the server instead of each client's own, an array as in the
// result of roots/list; nil for each client's own.
//
// Spec: 2025-11-25, client/roots, Root.
func (o *Options) roots() json.RawMessage {
	if len(o.Settings.Roots) == 0 {
		return nil
	}
	var text []byte
	for _, uri := range o.Settings.Roots {
		text = append(wire.AppendString(append(text, `,{"uri":`...), uri), '}')
	}
	text[0] = '['
	return append(text, ']')
}
