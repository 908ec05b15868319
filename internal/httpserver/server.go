// Package httpserver serves HTTP on one listener, with TLS or without, until it is shut
// down. It bounds what a client can hold before it has sent a request. Connections of [Listen]
// notice a client that does not read, or is gone, and cost little per request. An [InMemory]
// serves a handler of this process without sockets.
package httpserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

const (
	// headerTimeout bounds a request's headers, and the TLS handshake before them;
	// idleTimeout bounds a connection without a request. Neither touches a response in
	// progress.
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// maxHeader bounds a request's headers, in bytes.
	maxHeader = 64 << 10
)

// Options configure a Server. Handler and Logger are required.
type Options struct {
	Handler http.Handler
	Logger  *slog.Logger
	// TLS has the server speak HTTPS: HTTP/2 too, if its NextProtos have h2. Nil means
	// HTTP/1.1 without TLS.
	TLS *tls.Config
	// Plaintext has the server with TLS serve connections without, too: by HTTP/1.1 all of them.
	Plaintext bool
	// MaxNew is limits.new_connections. Zero means its default.
	MaxNew int64
	// MaxHeader bounds a request's headers, in bytes. Zero means 64 KiB.
	MaxHeader int
	// Idle bounds a connection without a request. Zero means 2 minutes.
	Idle time.Duration
	// Reached counts that a limit was reached; nil means nobody counts.
	Reached func(*limits.Limit)
}

// A Server is a net/http server on a listener, with the goroutine that serves.
type Server struct {
	opts     Options
	http     *http.Server
	listener net.Listener
	fresh    newConns
	many     transport.WarnLimiter
	done     chan struct{} // closed when serve has returned
	err      error         // why; read only after done is closed
}

// New returns a server on a listener, which it closes. It accepts nothing before Start.
func New(l net.Listener, o Options) *Server {
	o.MaxNew = cmp.Or(o.MaxNew, limits.NewConnections.Default)
	if o.Reached == nil {
		o.Reached = func(*limits.Limit) {}
	}
	s := &Server{opts: o, listener: l, done: make(chan struct{})}
	s.fresh.most = int(o.MaxNew)
	s.http = &http.Server{
		Handler:           o.Handler,
		TLSConfig:         o.TLS.Clone(), // net/http adds to it
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       cmp.Or(o.Idle, idleTimeout),
		MaxHeaderBytes:    cmp.Or(o.MaxHeader, maxHeader),
		ConnState:         s.note,
		// Broken handshakes and the like: a client's business, not ours.
		ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	if o.Plaintext && o.TLS != nil {
		s.opts.TLS, s.http.TLSConfig = nil, nil
		s.listener = &eitherListener{l, overHTTP1(o.TLS)}
		s.http.ConnContext, s.http.Handler = keepEither, withEither(o.Handler)
	}
	return s
}

// Addr returns the address that is listened on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Start serves in the background; Shutdown ends it.
func (s *Server) Start() { go s.serve() }

// Cancel closes the listener of a server that was not started.
func (s *Server) Cancel() { _ = s.listener.Close() }

// Done is closed when the server has ended; Err says why then.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns why the server has ended; nil if it was shut down.
func (s *Server) Err() error { return s.err }

func (s *Server) serve() {
	defer close(s.done)
	run := s.http.Serve
	if s.opts.TLS != nil {
		run = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	if err := run(s.listener); !errors.Is(err, http.ErrServerClosed) {
		s.err = fmt.Errorf("serving %s: %w", s.listener.Addr(), err)
	}
}

// note keeps the connections that have sent no request yet. Beyond the limit the oldest is
// closed, which of them all is the least likely to send one: a client that is slow on
// purpose loses its own.
func (s *Server) note(c net.Conn, state http.ConnState) {
	if state != http.StateNew {
		s.fresh.remove(c)
		return
	}
	closed, full := s.fresh.add(c)
	if closed == nil {
		return
	}
	hangUp(closed)
	if full {
		s.opts.Reached(limits.NewConnections)
		s.many.Warn(s.opts.Logger, "connection closed before its first request: too many are without one", "downstream", closed.RemoteAddr().String(), "limit", s.opts.MaxNew)
	}
}

// hangUp closes a connection without a word: in the middle of a handshake there is none.
func hangUp(c net.Conn) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	_ = c.Close() // nobody is told
}

// Shutdown waits until no request is in flight, or cuts them off when ctx ends. Clients
// open connections in reserve, for which net/http would wait five seconds: those are
// closed.
func (s *Server) Shutdown(ctx context.Context) error {
	for _, c := range s.fresh.end() {
		hangUp(c)
	}
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("requests were still in flight at the end of the drain and were cut off: %w", err)
		err = errors.Join(err, s.http.Close())
	}
	<-s.done
	return err
}
