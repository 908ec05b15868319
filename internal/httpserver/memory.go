package httpserver

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
)

// An InMemory serves one Handler without a listener. It is an [http.RoundTripper], which sends
// every request to that Handler, whatever its URL, over connections of net/http that have no
// sockets. Its methods are safe for concurrent use.
type InMemory struct {
	http.Transport

	server   http.Server
	listener memoryListener
	serving  sync.WaitGroup
}

// ServeInMemory returns an InMemory of h, which runs until Close.
func ServeInMemory(h http.Handler) *InMemory {
	s := &InMemory{listener: memoryListener{conns: make(chan net.Conn), done: make(chan struct{})}}
	s.server = http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	s.Transport.DialContext = s.listener.dial
	s.serving.Go(func() { _ = s.server.Serve(&s.listener) }) // ends with Close
	return s
}

// Close ends all connections, and waits until nothing is accepted any more.
func (s *InMemory) Close() {
	s.CloseIdleConnections()
	_ = s.server.Close() // pipes close without errors
	s.serving.Wait()
}

// A memoryListener accepts the connections that are dialed.
type memoryListener struct {
	conns chan net.Conn
	done  chan struct{} // closed by Close
	once  sync.Once
}

// Accept implements [net.Listener].
func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements [net.Listener].
func (l *memoryListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }

func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
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
