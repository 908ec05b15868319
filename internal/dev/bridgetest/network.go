package bridgetest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// A Listener is a net.Listener whose connections are in memory, so that a
// server and its clients run in a synctest bubble, where time passes when
// everybody waits. Connections have buffers of bounded size and deadlines, as
// those of TCP do.
type Listener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{} // closed by Close
	ports atomic.Int32  // of the clients
}

// bufferSize is how much a connection holds that was written and not read, each
// way.
const bufferSize = 64 << 10

// Listen returns a Listener. Its address looks like one on the loopback
// interface, but nobody else can reach it.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept returns the server's end of the next connection, or [net.ErrClosed].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close unblocks Accept and DialContext. Connections stay.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr returns 127.0.0.1:80, so that http://127.0.0.1 is the server's URL.
func (l *Listener) Addr() net.Addr { return loopback(80) }

// DialContext connects to the listener, whatever the address. It waits for
// Accept, and fits [http.Transport].
func (l *Listener) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	local := loopback(40_000 + int(l.ports.Add(1)))
	client, server := newConnPair(local, l.Addr())
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, &net.OpError{Op: "dial", Net: network, Addr: l.Addr(), Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Transport returns an http.Transport that reaches the listener under every
// host name. The caller closes its idle connections.
func (l *Listener) Transport() *http.Transport {
	return &http.Transport{DialContext: l.DialContext, DisableCompression: true}
}

func loopback(port int) net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
}
