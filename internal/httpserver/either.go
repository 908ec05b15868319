package httpserver

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
)

// recordHandshake is the first byte of a connection that begins with TLS. No request begins with
// it.
//
// Spec: RFC 8446, 5.1.
const recordHandshake = 22

// overHTTP1 returns a configuration by which clients choose HTTP/1.1: HTTP/2 is net/http's own, over
// connections that it knows to be TLS.
func overHTTP1(conf *tls.Config) *tls.Config {
	c := conf.Clone()
	c.NextProtos = []string{"http/1.1"}
	if choose := conf.GetConfigForClient; choose != nil {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			if err != nil || chosen == nil {
				return nil, err
			}
			return overHTTP1(chosen), nil
		}
	}
	return c
}

// An eitherListener accepts connections that begin with TLS, or not.
type eitherListener struct {
	net.Listener
	conf *tls.Config
}

// Accept implements [net.Listener].
func (l *eitherListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &eitherConn{Conn: c, conf: l.conf}, nil
}

// An eitherConn is a connection of which nobody knows whether it begins with TLS, until something
// was read. One goroutine at a time reads, and nothing is written before.
type eitherConn struct {
	net.Conn
	conf   *tls.Config
	begun  bool                     // something was read; the reader's
	secure atomic.Pointer[tls.Conn] // nil without TLS
}

// Read implements [net.Conn].
func (c *eitherConn) Read(p []byte) (int, error) {
	if !c.begun && len(p) > 0 {
		n, err := c.Conn.Read(p[:1])
		if n == 0 {
			return n, err
		}
		c.begun = true
		if p[0] != recordHandshake {
			return n, err
		}
		c.secure.Store(tls.Server(&unread{Conn: c.Conn, first: []byte{p[0]}}, c.conf))
	}
	if s := c.secure.Load(); s != nil {
		return s.Read(p)
	}
	return c.Conn.Read(p)
}

// Write implements [net.Conn].
func (c *eitherConn) Write(p []byte) (int, error) {
	if s := c.secure.Load(); s != nil {
		return s.Write(p)
	}
	return c.Conn.Write(p)
}

// CloseWrite says that nothing more will be written.
func (c *eitherConn) CloseWrite() error {
	if s := c.secure.Load(); s != nil {
		return s.CloseWrite()
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// An unread connection has a byte that was read already.
type unread struct {
	net.Conn
	first []byte
}

// Read implements [net.Conn].
func (c *unread) Read(p []byte) (int, error) {
	if len(c.first) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.first)
	c.first = c.first[n:]
	return n, nil
}

type eitherKey struct{}

// keepEither has the context of a connection's requests know it.
func keepEither(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, eitherKey{}, c)
}

// withEither has requests know of the TLS of their connection, as net/http does.
func withEither(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(eitherKey{}).(*eitherConn); ok {
			if s := c.secure.Load(); s != nil {
				state := s.ConnectionState()
				r.TLS = &state
			}
		}
		next.ServeHTTP(w, r)
	})
}
