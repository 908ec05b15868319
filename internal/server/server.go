package server

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// Options describe a server. Those that the backs have, too, mean the same there, and zero
// means the backs' default.
type Options struct {
	// Name is the server's, for logs and errors. Required.
	Name string

	// URL, Command and Dial say how the server is reached; exactly one is set. A URL is
	// that of an HTTP endpoint, or of a WebSocket.
	URL          string
	Header       http.Header
	Transport    legacyback.Transport // of a URL; empty lets the server decide
	RoundTripper http.RoundTripper    // of a URL; nil means a connection pool of its own
	Command      transport.CommandOptions
	Dial         func(context.Context) (transport.Conn, error)

	// Start starts the command; nil means [transport.StartCommand].
	Start func(transport.CommandOptions) (transport.Conn, error)
	// StateDir is where it is kept what a command said of itself; empty means nowhere.
	StateDir string
	// OneClient says that the server has one client, which decides what a command is
	// asked first.
	OneClient bool

	// Era is spec.Unknown for a server that is to be asked.
	Era            spec.Era
	ClientInfo     []byte // an Implementation. Required
	HideExtensions []string
	Roots          []string // URIs; none means that clients are asked
	Lanes          int
	KeepLane       bool
	Synthesize     legacyback.Synthesize
	Subresources   fanout.Subresources
	Cache          map[string]mcp.CacheHint

	Timeouts                     legacyback.Timeouts
	Idle, Linger, KeepAlive      time.Duration
	Subscribes, MaxMessage       int
	MaxSessions, MaxSessionsEach int

	Logger  *slog.Logger
	Metrics mcp.Metrics
}

// isCommand reports whether the server is a process of ours.
func (o *Options) isCommand() bool { return len(o.Command.Argv) > 0 }

// overWebSocket reports whether the server is reached over a WebSocket.
func (o *Options) overWebSocket() bool {
	scheme, _, _ := strings.Cut(o.URL, "://")
	return strings.EqualFold(scheme, "ws") || strings.EqualFold(scheme, "wss")
}

// A Server is one upstream server.
type Server struct {
	opts     Options             // read-only
	launcher *transport.Launcher // see Launcher

	// awaitClient returns once a client waits for the era, or ctx ends; nil if one
	// always does.
	awaitClient func(ctx context.Context)
	// found is what askProcess has found, until it is asked for.
	found atomic.Pointer[detect.Finding]
	// pinned says that it was tried whether the command's first request decides its era.
	pinned atomic.Bool
}

// New returns a Server. It starts nothing.
func New(o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = mcp.NoMetrics{}
	}
	s := &Server{opts: o}
	if o.isCommand() {
		s.launcher = transport.NewLauncher(s.startCommand, s.askProcess)
	}
	return s
}

// Era returns the configured era; spec.Unknown if the server is to be asked.
func (s *Server) Era() spec.Era {
	if s.opts.Transport == legacyback.TransportSSE {
		return spec.Legacy
	}
	return s.opts.Era
}

// SetEra configures the era, for a Server that is opened afterwards.
func (s *Server) SetEra(era spec.Era) { s.opts.Era = era }

// OnConnection reports whether all messages of a session share one connection.
func (s *Server) OnConnection() bool { return s.opts.isCommand() || s.dial() != nil }

// Close ends the processes of a Server that was not opened.
func (s *Server) Close() {
	if s.launcher != nil {
		s.launcher.Close()
	}
}

// legacyOptions are those of a back of the legacy era.
func (s *Server) legacyOptions() legacyback.Options {
	from := &s.opts
	o := legacyback.Options{
		Name:            from.Name,
		ClientInfo:      from.ClientInfo,
		Roots:           roots(from.Roots),
		HideExtensions:  from.HideExtensions,
		OneClient:       from.OneClient,
		Lanes:           from.Lanes,
		KeepLane:        from.KeepLane,
		Synthesize:      from.Synthesize,
		Timeouts:        from.Timeouts,
		Idle:            from.Idle,
		Linger:          from.Linger,
		Subscribes:      from.Subscribes,
		MaxSessions:     from.MaxSessions,
		MaxSessionsEach: from.MaxSessionsEach,
		MaxMessage:      from.MaxMessage,
		Subresources:    from.Subresources,
		Cache:           from.Cache,
		Logger:          from.Logger,
		Metrics:         from.Metrics,
		Launcher:        s.launcher,
		Dial:            s.dial(),
	}
	if o.Launcher == nil && o.Dial == nil {
		o.URL, o.Headers, o.Transport, o.RoundTripper = from.URL, from.Header, from.Transport, from.RoundTripper
	}
	return o
}

// dial opens connections to a server that is neither a command nor reached over HTTP; it
// is nil for these.
func (s *Server) dial() func(context.Context) (transport.Conn, error) {
	if s.opts.overWebSocket() {
		return s.dialWebSocket
	}
	return s.opts.Dial
}

func (s *Server) dialWebSocket(ctx context.Context) (transport.Conn, error) {
	c, err := transport.DialWebSocket(ctx, transport.DialOptions{
		URL:              s.opts.URL,
		Header:           s.opts.Header,
		WebSocketOptions: transport.WebSocketOptions{MaxMessage: s.opts.MaxMessage, KeepAlive: s.opts.KeepAlive},
	})
	if err != nil {
		return nil, err // and no typed nil in the interface
	}
	return c, nil
}

// startCommand starts the server's command, which lives as long as the connection.
func (s *Server) startCommand() (transport.Conn, error) {
	if s.opts.Start != nil {
		return s.opts.Start(s.opts.Command)
	}
	c, err := transport.StartCommand(s.opts.Command)
	if err != nil {
		return nil, err // and no typed nil in the interface
	}
	s.opts.Metrics.CommandStarted(s.opts.Name)
	return c, nil
}

// roots returns what roots/list is answered with, or nil for what each client answers.
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
