package gateway

import (
	"context"
	"fmt"
	"net"
	"time"

	modernfront "github.com/mcpbridge/mcpbridge/modern/front"
)

// sendBuffer is how many bytes of a response the kernel may hold for a client
// that does not read. Left alone it grows to megabytes per connection: a
// stalled reader would block a write late or never, and cost that much until
// then. Linux doubles the figure for its own bookkeeping.
const sendBuffer = 64 << 10

const (
	// largeBuffer is how many bytes it may hold of a large result meanwhile. Each
	// time the buffer runs full costs a turn of both sides, and the result is in
	// memory anyway.
	largeBuffer = 208 << 10
	// largeWrite is from how many bytes on a write is one of those.
	largeWrite = 256 << 10
)

// Listen listens on addr (host:port) for clients. The connections it accepts
// have a small send buffer, so that the write of a stream to a reader that has
// stalled blocks and runs into its deadline, and notice a peer that is gone
// without a word within writeTimeout of not being acknowledged; zero means
// the fronts' default.
func Listen(ctx context.Context, addr string, writeTimeout time.Duration) (net.Listener, error) {
	if writeTimeout <= 0 {
		writeTimeout = modernfront.DefaultWriteTimeout
	}
	// The kernel's keep-alive is switched on per connection, below.
	l, err := (&net.ListenConfig{KeepAlive: -1}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", addr, err)
	}
	return &listener{Listener: l, timeout: writeTimeout}, nil
}

// A listener bounds what each connection may hold back.
type listener struct {
	net.Listener
	timeout time.Duration
}

// Accept waits for a connection. One that can't be bounded is closed and
// passed over: it is most likely gone already.
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
			return &clientConn{TCPConn: tcp}, nil
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
