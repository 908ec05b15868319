package back

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// Options describe one upstream server of the modern era and how to treat it.
type Options struct {
	// Name is the server's name in the configuration: it stands in every message
	// to people and in every error. Required.
	Name string

	// Where the server is: exactly one of URL and Dial.

	// URL is the server's MCP endpoint over Streamable HTTP.
	URL string
	// Headers go with every HTTP request, credentials among them. They can't
	// replace the headers the protocol defines.
	Headers http.Header
	// RoundTripper sends HTTP requests; nil means net/http's transport. It must not
	// follow redirects: credentials go to URL's origin alone.
	RoundTripper http.RoundTripper
	// Dial opens a connection of messages: a child process started, a pipe. Each
	// call gives a fresh one, which the Back closes. ctx bounds the opening, not
	// the connection. One connection serves everybody, since the era has no
	// sessions.
	Dial func(ctx context.Context) (transport.Conn, error)

	// IDs is the highest id of a request that a connection was sent before Dial returned
	// it: those of the Back's own are greater.
	IDs int64

	// What the server is told.

	// ClientInfo is the gateway's own name and version, an Implementation object,
	// for requests whose client gave none. Required.
	ClientInfo json.RawMessage
	// LogLevel is what requests ask for whose client did not; empty for no
	// messages.
	LogLevel spec.LogLevel
	// HideExtensions are names of extensions and experimental capabilities that
	// cross in neither direction. With [spec.ExtensionTasks] among them no request
	// about a task does.
	HideExtensions []string

	// Foretold is what a probe was answered a moment ago, its capabilities as the
	// server wrote them: Describe tells it until the server was reached, or not. Nil
	// for none.
	Foretold *mcp.Description

	// How long and how much. Zero means the default; negative is an error.

	Timeouts Timeouts
	// Linger is how long an upstream subscription outlives its last subscriber.
	Linger time.Duration
	// Subscribes is how many subscribes a second, and as many unsubscribes, each
	// share may cause in the long run. Those of 10 s may come at once. Zero means the
	// default of limits.SubscribesEach.
	Subscribes int
	// MaxMessage bounds one message of the server, in bytes.
	MaxMessage int

	// Subresources says what becomes of an update for a URI below one that is
	// wanted. Empty means [fanout.SubresourcesParent].
	Subresources fanout.Subresources

	// Whom the Back tells.

	Logger  *slog.Logger // nil discards
	Metrics Metrics      // nil counts nothing
	Changes mcp.Changes  // nil tells nobody of changes
	// Doubt is called when the server answers as only one of the other era would,
	// with what it did. It must not block; nil means nobody wants to know.
	Doubt func(why string)
}

// Timeouts bound the waiting for a server; see [upstream.Timeouts].
type Timeouts = upstream.Timeouts

// Metrics counts what a Back does; see [mcp.Metrics].
type Metrics = mcp.Metrics

// shared returns what of o both eras know.
func (o *Options) shared() *upstream.Options {
	return &upstream.Options{
		Name: o.Name, URL: o.URL, Headers: o.Headers, RoundTripper: o.RoundTripper, ClientInfo: o.ClientInfo,
		Timeouts: o.Timeouts, Linger: o.Linger, Subscribes: o.Subscribes, MaxMessage: o.MaxMessage, Subresources: o.Subresources,
		Logger: o.Logger, Metrics: o.Metrics, Changes: o.Changes, Doubt: o.Doubt,
	}
}

// check reports the first fault of o.
func (o *Options) check() error {
	if err := o.shared().Check(); err != nil {
		return fmt.Errorf("modern/back: New: %w", err)
	}
	switch {
	case (o.URL == "") == (o.Dial == nil):
		return fmt.Errorf("modern/back: New: server %q: want exactly one of URL and Dial", o.Name)
	case o.LogLevel != "" && !o.LogLevel.Valid():
		return fmt.Errorf("modern/back: New: server %q: unknown LogLevel %q", o.Name, o.LogLevel)
	}
	return nil
}

// fill replaces zero values by their defaults, and returns what both eras know.
func (o *Options) fill() *upstream.Options {
	s := o.shared()
	s.Fill(spec.Modern)
	o.Timeouts, o.Linger, o.MaxMessage, o.Subresources = s.Timeouts, s.Linger, s.MaxMessage, s.Subresources
	o.Logger, o.Metrics, o.Changes, o.Doubt = s.Logger, s.Metrics, s.Changes, s.Doubt
	return s
}
