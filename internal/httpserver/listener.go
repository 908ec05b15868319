package httpserver

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// sendBuffer is how many bytes of a response the kernel may buffer for a client that does
// not read. By default the buffer grows to megabytes per connection: a write to a stalled
// reader would block late or never, and use that much memory until then. Linux doubles the
// figure for its own bookkeeping.
const sendBuffer = 64 << 10

const (
	// largeBuffer is the size of that buffer during the write of a large result. Each time
	// the buffer is full, both sides have to switch, and the result is in memory anyway.
	largeBuffer = 208 << 10
	// largeWrite is the size from which on a write uses largeBuffer.
	largeWrite = 256 << 10
)

// Listen listens on addr (host:port) for clients. The connections that it accepts have a
// small send buffer, so that a write to a stalled reader blocks until its deadline. They
// also fail if the peer acknowledges nothing for writeTimeout, as one that has vanished;
// zero means [transport.DefaultWriteTimeout].
func Listen(ctx context.Context, addr string, writeTimeout time.Duration) (net.Listener, error) {
	if writeTimeout <= 0 {
		writeTimeout = transport.DefaultWriteTimeout
	}
	// The kernel's keep-alive is switched on per connection, below.
	l, err := (&net.ListenConfig{KeepAlive: -1}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", addr, err)
	}
	return &listener{Listener: l, timeout: writeTimeout}, nil
}

// A listener bounds the send buffer of each connection.
type listener struct {
	net.Listener
	timeout time.Duration
}

// Accept waits for a connection. It closes and skips a connection whose options can't be
// set: the client has most likely left.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			return c, nil
		}
		if bound(tcp, l.timeout) == nil {
			return newConn(tcp), nil
		}
		_ = c.Close()
	}
}

func bound(c *net.TCPConn, timeout time.Duration) error {
	if err := c.SetWriteBuffer(sendBuffer); err != nil {
		return err
	}
	return setUserTimeout(c, timeout)
}
