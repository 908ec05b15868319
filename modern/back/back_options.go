package back

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// Defaults of Options.
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultRequestTimeout = 60 * time.Second
	DefaultMaxTimeout     = 30 * time.Minute
	DefaultLinger         = 2 * time.Second
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

// Metrics counts what a Back does; see [upstream.Metrics].
type Metrics = upstream.Metrics

// shared returns what package upstream needs to know.
func (o *Options) shared() *upstream.Options {
	return &upstream.Options{
		Name:         o.Name,
		URL:          o.URL,
		Headers:      o.Headers,
		RoundTripper: o.RoundTripper,
		Timeouts:     o.Timeouts,
		MaxMessage:   o.MaxMessage,
		Logger:       o.Logger,
		Metrics:      o.Metrics,
	}
}

// check reports the first fault of o.
func (o *Options) check() error {
	switch {
	case o.Name == "":
		return errors.New("modern/back: New: no Name")
	case (o.URL == "") == (o.Dial == nil):
		return fmt.Errorf("modern/back: New: server %q: want exactly one of URL and Dial", o.Name)
	case len(o.ClientInfo) == 0:
		return fmt.Errorf("modern/back: New: server %q: no ClientInfo", o.Name)
	case o.LogLevel != "" && !o.LogLevel.Valid():
		return fmt.Errorf("modern/back: New: server %q: unknown LogLevel %q", o.Name, o.LogLevel)
	case o.Timeouts.Connect < 0, o.Timeouts.Request < 0, o.Timeouts.Max < 0:
		return fmt.Errorf("modern/back: New: server %q: negative time-out", o.Name)
	case o.Subresources != "" && !o.Subresources.Valid():
		return fmt.Errorf("modern/back: New: server %q: unknown Subresources %q", o.Name, o.Subresources)
	case o.Linger < 0, o.Subscribes < 0, o.MaxMessage < 0:
		return fmt.Errorf("modern/back: New: server %q: negative limit", o.Name)
	}
	return o.checkURL()
}

func (o *Options) checkURL() error {
	if o.URL == "" {
		return nil
	}
	// The parse error would repeat the URL, which may hold a secret.
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("modern/back: New: server %q: URL is no absolute http or https URL", o.Name)
	}
	return nil
}

// fill replaces zero values by their defaults.
func (o *Options) fill() {
	o.Timeouts.Connect = cmp.Or(o.Timeouts.Connect, DefaultConnectTimeout)
	o.Timeouts.Request = cmp.Or(o.Timeouts.Request, DefaultRequestTimeout)
	o.Timeouts.Max = max(cmp.Or(o.Timeouts.Max, DefaultMaxTimeout), o.Timeouts.Request)
	o.Linger = cmp.Or(o.Linger, DefaultLinger)
	o.MaxMessage = cmp.Or(o.MaxMessage, int(limits.UpstreamMessage.Default))
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = o.Logger.With("upstream", o.Name, "era", spec.Modern.String())
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	if o.Changes == nil {
		o.Changes = noChanges{}
	}
	if o.Doubt == nil {
		o.Doubt = func(string) {}
	}
}

type noMetrics struct{}

func (noMetrics) Dropped(string, string) {}
func (noMetrics) Limit(string, string)   {}

// noChanges is told of changes where nobody is: nothing is wanted.
type noChanges struct{}

func (noChanges) Publish(fanout.Event)     {}
func (noChanges) Wanted(fanout.Topic) bool { return false }
func (noChanges) End(fanout.Topic, error)  {}
