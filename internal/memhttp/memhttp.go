// Package memhttp serves an http.Handler in memory: requests reach it by a RoundTripper,
// over connections of net/http that have no sockets.
package memhttp

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
)

// A Server serves one Handler. It is an [http.RoundTripper], which sends every request to
// that Handler, whatever its URL. Its methods are safe for concurrent use.
type Server struct {
	http.Transport

	server   http.Server
	listener listener
	serving  sync.WaitGroup
}

// Serve returns a Server of h, which runs until Close.
func Serve(h http.Handler) *Server {
	s := &Server{listener: listener{conns: make(chan net.Conn), done: make(chan struct{})}}
	s.server = http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	s.Transport.DialContext = s.listener.dial
	s.serving.Go(func() { _ = s.server.Serve(&s.listener) }) // ends with Close
	return s
}

// Close ends all connections, and waits until nothing is accepted any more.
func (s *Server) Close() {
	s.CloseIdleConnections()
	_ = s.server.Close() // pipes close without errors
	s.serving.Wait()
}

// A listener accepts the connections that are dialed.
type listener struct {
	conns chan net.Conn
	done  chan struct{} // closed by Close
	once  sync.Once
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
