package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/metrics"
	"github.com/mcpbridge/mcpbridge/internal/notebook"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// newGateway turns a configuration into a gateway with all its servers, whose commands
// keep minds. It starts nothing. clientFirst says that there is one client, who decides
// what a command is asked first.
func newGateway(c *config.Config, clientFirst bool, p process, log *slog.Logger, m *metrics.Metrics, keep transport.Guard) (*gateway.Gateway, error) {
	o := gatewayOptions(c)
	o.Logger, o.Metrics, o.MachineName, o.Secrets = log, m, machineName(), p.secrets
	for i := range c.Servers {
		if s := &c.Servers[i]; !s.Disabled {
			b := &builder{config: c, server: s, clientFirst: clientFirst, environ: p.environ, secrets: p.secrets, upstream: p.upstream, log: log, metrics: m, guard: keep}
			o.Servers = append(o.Servers, b.serverOptions())
		}
	}
	g, err := gateway.New(o)
	if err != nil {
		return nil, fmt.Errorf("building the gateway: %w", err)
	}
	return g, nil
}

// machineName returns what the machine is called, or nothing if it does not say.
func machineName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// gatewayOptions are what the servers have in common.
func gatewayOptions(c *config.Config) gateway.Options {
	return gateway.Options{
		Memory:          c.Limits.Memory / payloadPart,
		MaxBody:         c.Limits.Body,
		MaxDepth:        int(c.Limits.Depth),
		Lengths:         lengths(&c.Limits),
		MaxRequests:     int(c.Limits.Requests),
		MaxRequestsEach: int(c.Limits.RequestsEach),
		MaxStreams:      int(c.Limits.Streams),
		MaxTopics:       int(c.Limits.ListenTopics),
		MaxParked:       int(c.Limits.Parked),
		MaxParkedEach:   int(c.Limits.ParkedEach),
		MaxSessions:     int(c.Limits.ClientSessions),
		MaxSessionsEach: int(c.Limits.ClientSessionsEach),
		MaxSockets:      int(c.Limits.WebSockets),
		MaxSocketsEach:  int(c.Limits.WebSocketsEach),
		SessionIdle:     c.ClientIdle,
		MaxStored:       int(c.Limits.ClientEvents),
		CacheEntries:    int(c.Limits.CacheEntries),
		CacheBytes:      int(c.Limits.Cache),
		StateKeys:       c.StateKeys,
		BodyTimeout:     c.BodyTimeout,
		DebugErrors:     c.DebugErrors,
		Drain:           c.Drain - closing(c.Drain),
		WriteTimeout:    c.WriteTimeout,
		KeepAlive:       c.KeepAlive,
		AllowedHosts:    c.AllowedHosts,
		AllowedOrigins:  c.AllowedOrigins,
		TrustedProxies:  networks(c.TrustedProxies),
	}
}

// networks trusts that texts were checked.
func networks(texts []string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		if n, err := config.Network(text); err == nil {
			out = append(out, n)
		}
	}
	return out
}

func lengths(l *config.Limits) mcp.Lengths {
	return mcp.Lengths{
		ID:            int(l.ID),
		ProgressToken: int(l.ProgressToken),
		Method:        int(l.Method),
		URI:           int(l.URI),
		Filter:        int(l.Filter),
		ClientInfo:    int(l.ClientInfo),
		Capabilities:  int(l.Capabilities),
	}
}

// An upstream is how servers are reached. The zero value does it over the network and
// starts processes; a test has servers in memory.
type upstream struct {
	http  http.RoundTripper                                      // nil: each back has its own
	start func(transport.CommandOptions) (transport.Conn, error) // nil: transport.StartCommand
}

// A builder builds the back of one server.
type builder struct {
	config   *config.Config
	server   *config.Server
	environ  []string
	log      *slog.Logger
	metrics  *metrics.Metrics
	guard    transport.Guard // nil for nobody
	secrets  *redact.Redactor
	upstream upstream

	clientFirst bool                // the server has one client, which decides what is asked first
	launcher    *transport.Launcher // see processes
	// awaitClient returns once a client waits for what is found out, or ctx ends; nil if
	// one always does.
	awaitClient func(ctx context.Context)

	// found is what askProcess has found, until it is asked for.
	found atomic.Pointer[detect.Finding]
	// pinned says that it was tried whether the command's first request decides its era.
	pinned atomic.Bool
}

func (b *builder) serverOptions() gateway.ServerOptions {
	s := b.server
	return gateway.ServerOptions{
		Name:              s.Name,
		Open:              b.open,
		Command:           s.Command != "",
		Patience:          s.Timeouts.Connect,
		Isolation:         gateway.Isolation(s.Isolation),
		Gather:            s.Gather,
		ParkedTTL:         s.ParkedTTL,
		Keep:              s.Kept(),
		LogLevel:          spec.LogLevel(strings.TrimPrefix(s.LogLevel, "none")),
		Experimental:      s.Experimental,
		HideExtensions:    s.Hidden(),
		ForwardClientInfo: s.ClientInfo == "client",
	}
}

func (b *builder) backOptions() legacyback.Options {
	s := b.server
	o := legacyback.Options{
		Name:           s.Name,
		ClientInfo:     implementation(),
		Roots:          roots(s.Roots),
		HideExtensions: s.Hidden(),
		OneClient:      b.clientFirst,
		Lanes:          int(s.Lanes.Stdio),
		KeepLane:       s.Isolation == string(gateway.IsolateNothing),
		Synthesize:     legacyback.Synthesize(s.Synthesize),
		Timeouts:       legacyback.Timeouts{Connect: s.Timeouts.Connect, Request: s.Timeouts.Request, Max: s.Timeouts.Max},
		Idle:           s.Idle,
		Linger:         s.Linger,
		Subscribes:     int(b.config.Limits.SubscribesEach),
		MaxSessions:    int(b.config.Limits.Sessions),
		MaxMessage:     int(b.config.Limits.UpstreamMessage),
		Subresources:   legacyback.Subresources(s.Subresources),
		Cache:          cacheHints(s.Cache),
		Logger:         b.log,
		Metrics:        b.metrics,
	}
	o.Launcher, o.Dial = b.processes(), b.dial()
	if o.Launcher == nil && o.Dial == nil {
		o.URL, o.Headers, o.Transport = s.URL, b.headers(), legacyback.Transport(s.Type)
		o.RoundTripper = b.upstream.http
	}
	if s.Command != "" {
		o.MaxSessions, o.MaxSessionsEach = int(min(b.config.Limits.CommandSessions, b.config.Limits.Sessions)), int(b.config.Limits.CommandSessionsEach)
	}
	if s.URL != "" {
		o.Lanes = int(s.Lanes.HTTP) // another connection finds the same server, another child is another one
	}
	return o
}

// dial opens connections to a server that is neither a command nor reached over HTTP; it
// is nil for these.
func (b *builder) dial() func(context.Context) (transport.Conn, error) {
	switch {
	case b.server.Builtin != "":
		book := notebook.New(notebook.Options{Version: version(), Logger: b.log.With("upstream", b.server.Name)})
		return (&builtin{book: book, modern: b.server.Builtin == modernNotebook}).dial
	case b.server.OverWebSocket():
		return b.dialSocket
	}
	return nil
}

// onConnection reports whether all messages of a session share one connection.
func (b *builder) onConnection() bool { return b.server.Command != "" || b.dial() != nil }

// dialSocket opens a WebSocket to the server.
func (b *builder) dialSocket(ctx context.Context) (transport.Conn, error) {
	c, err := transport.DialWebSocket(ctx, transport.DialOptions{
		URL:    b.server.URL,
		Header: b.headers(),
		WebSocketOptions: transport.WebSocketOptions{
			MaxMessage: int(b.config.Limits.UpstreamMessage),
			KeepAlive:  b.config.KeepAlive,
		},
	})
	if err != nil {
		return nil, err // and no typed nil in the interface
	}
	return c, nil
}

// headers are the server's own, for one that is a URL.
func (b *builder) headers() http.Header {
	h := make(http.Header)
	for name, value := range b.server.Headers {
		h.Set(name, value)
	}
	return h
}

// startCommand starts the server's command, which lives as long as the
// connection.
func (b *builder) startCommand() (transport.Conn, error) {
	if b.upstream.start != nil {
		return b.upstream.start(b.commandOptions())
	}
	c, err := transport.StartCommand(b.commandOptions())
	if err != nil {
		return nil, err // and no typed nil in the interface
	}
	b.metrics.CommandStarted(b.server.Name)
	return c, nil
}

func (b *builder) commandOptions() transport.CommandOptions {
	return transport.CommandOptions{
		Argv:       append([]string{b.server.Command}, b.server.Args...),
		Dir:        b.server.Cwd,
		Environ:    b.environ,
		Env:        b.server.Env,
		Name:       b.server.Name,
		Logger:     b.log,
		MaxMessage: int(b.config.Limits.UpstreamMessage),
		CloseGrace: closeGrace(b.config.Drain),
		Guard:      b.guard,
		Secrets:    b.secrets,
	}
}

// roots returns what roots/list is answered with, or nil for what each client
// answers.
//
// Spec: 2025-11-25, client/roots, Root.
func roots(uris []string) []byte {
	if len(uris) == 0 {
		return nil
	}
	var text []byte
	for _, uri := range uris {
		text = append(wire.AppendString(append(text, `,{"uri":`...), uri), '}')
	}
	text[0] = '['
	return append(text, ']')
}

func cacheHints(from map[string]config.CacheHint) map[string]mcp.CacheHint {
	hints := make(map[string]mcp.CacheHint, len(from))
	for method, h := range from {
		hints[method] = mcp.CacheHint{TTL: h.TTL.Milliseconds(), Public: h.Scope == spec.ScopePublic}
	}
	return hints
}
