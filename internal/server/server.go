package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/remember"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// Options describe a server. Those that the backs also have mean the same there; zero
// means the backs' default.
type Options struct {
	// URL may be that of a WebSocket, too. Changes and Doubt are nil: Open knows them.
	upstream.Options

	// Exactly one of URL, Command and Dial is set.

	Transport legacyback.Transport // of a URL; empty lets the server decide
	Command   transport.CommandOptions
	Dial      func(context.Context) (transport.Conn, error)

	// Dialed is told of each attempt to open a WebSocket, with nil if it succeeds; it may be
	// nil. It does not block.
	Dialed func(error)

	// Start starts the command; nil means [transport.StartCommand].
	Start func(transport.CommandOptions) (transport.Conn, error)
	// StateDir is where descriptions of commands are stored; empty means nowhere.
	StateDir string
	// Records are where all replicas store the descriptions of a command of this Definition, which
	// the first request starts; nil for one replica.
	Records    remember.Records
	Definition string
	// OneClient says that the server has only one client, whose first request is a
	// command's first request: unless it is InGroup, where what a client sends is not the server's.
	OneClient, InGroup bool

	ClientIdle, KeepAlive        time.Duration
	MaxSessions, MaxSessionsEach int
}

// isCommand reports whether the server is a command.
func (o *Options) isCommand() bool { return len(o.Command.Argv) > 0 }

// followsClient reports whether the first request of the only client decides how the server is asked.
func (o *Options) followsClient() bool { return o.OneClient && !o.InGroup && o.isCommand() }

// overWebSocket reports whether the server is reached over a WebSocket.
func (o *Options) overWebSocket() bool {
	scheme, _, _ := strings.Cut(o.URL, "://")
	return strings.EqualFold(scheme, "ws") || strings.EqualFold(scheme, "wss")
}

// A Server is one upstream server.
type Server struct {
	opts     Options             // read-only
	launcher *transport.Launcher // see Launcher

	// awaitClient returns when a client waits for the era, or ctx ends; nil if a client
	// always waits.
	awaitClient func(ctx context.Context)
	// found is the finding of askProcess for the next probe.
	found atomic.Pointer[detect.Finding]
	// triedAfresh says that detectAfresh was called.
	triedAfresh atomic.Bool
}

// New returns a Server. It starts nothing.
func New(o Options) *Server {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Metrics = cmp.Or[mcp.Metrics](o.Metrics, mcp.NoMetrics{})
	if o.Losses == nil {
		o.Losses = upstream.NewLosses()
	}
	s := &Server{opts: o}
	if o.isCommand() {
		s.launcher = transport.NewLauncher(s.startCommand, s.askProcess)
	}
	return s
}

// Era returns the configured era; spec.Unknown if the server is probed.
func (s *Server) Era() spec.Era {
	if s.opts.Transport == legacyback.TransportSSE {
		return spec.Legacy
	}
	return s.opts.Settings.KnownEra()
}

// SetEra sets the configured era. Call it before Open.
func (s *Server) SetEra(era spec.Era) { s.opts.Settings.Era = era.String() }

// OnConnection reports whether all messages of a session share one connection.
func (s *Server) OnConnection() bool { return s.opts.isCommand() || s.dial() != nil }

// Close ends the processes of a Server that was not opened.
func (s *Server) Close() {
	if s.launcher != nil {
		s.launcher.Close()
	}
}

// legacyOptions returns the options of a legacy back.
func (s *Server) legacyOptions() legacyback.Options {
	from := &s.opts
	o := legacyback.Options{
		Options:         s.shared(),
		Transport:       from.Transport,
		OneClient:       from.OneClient,
		ClientIdle:      from.ClientIdle,
		MaxSessions:     from.MaxSessions,
		MaxSessionsEach: from.MaxSessionsEach,
		Launcher:        s.launcher,
		Dial:            s.dial(),
	}
	if o.URL == "" {
		o.Transport = ""
	}
	if from.overWebSocket() { // which is no process, and finds the same server
		o.Settings.Lanes.Stdio = o.Settings.Lanes.HTTP
		o.Eager = true
	}
	return o
}

// shared returns the options of a back of either era. URL is empty unless the server is
// reached over HTTP.
func (s *Server) shared() upstream.Options {
	o := s.opts.Options
	if s.OnConnection() {
		o.URL, o.Headers, o.Renewed, o.RoundTripper, o.TLS, o.Credentials = "", nil, nil, nil, nil, nil
	}
	return o
}

// dial returns the function that opens connections; nil for a command, and for a server
// over HTTP.
func (s *Server) dial() func(context.Context) (transport.Conn, error) {
	if s.opts.overWebSocket() {
		return s.dialWebSocket
	}
	return s.opts.Dial
}

func (s *Server) dialWebSocket(ctx context.Context) (transport.Conn, error) {
	var c *transport.WebSocket
	err := s.opts.Authorized(ctx, func(header http.Header) (status int, err error) {
		c, err = transport.DialWebSocket(ctx, transport.DialOptions{
			URL:              s.opts.URL,
			Header:           header,
			TLS:              s.opts.TLS,
			WebSocketOptions: transport.WebSocketOptions{MaxMessage: s.opts.MaxMessage, KeepAlive: s.opts.KeepAlive},
		})
		if refused := (*transport.HandshakeError)(nil); errors.As(err, &refused) {
			status = refused.Status
		}
		return status, err
	})
	if s.opts.Dialed != nil && ctx.Err() == nil {
		s.opts.Dialed(err)
	}
	if err != nil {
		return nil, err // and no typed nil in the interface
	}
	return c, nil
}

// startCommand starts the server's command, which runs as long as the connection is open.
func (s *Server) startCommand() (transport.Conn, error) {
	if s.opts.Start != nil {
		return s.opts.Start(s.opts.Command)
	}
	o := s.opts.Command
	o.Quiet = s.Era() == spec.Unknown // see discoverCommand
	c, err := transport.StartCommand(o)
	if err != nil {
		return nil, err // and no typed nil in the interface
	}
	s.opts.Metrics.CommandStarted(s.opts.Name)
	return c, nil
}
