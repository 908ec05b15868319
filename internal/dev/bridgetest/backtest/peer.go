package backtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Peer is the far end of a connection: a server played by a test.
type Peer struct {
	T    testing.TB
	Conn transport.Conn
}

// Read returns the next message, and fails the test if there is none.
func (p *Peer) Read() wire.Message {
	p.T.Helper()
	text, err := p.Conn.Read()
	if err != nil {
		p.T.Errorf("reading from the back: %v", err)
		return wire.Message{}
	}
	m, err := wire.Parse(text, wire.Options{UniqueParams: true})
	if err != nil {
		p.T.Errorf("the back wrote %s: %v", text, err)
	}
	return m
}

// Want reads the next message, which must be of method.
func (p *Peer) Want(method string) wire.Message {
	p.T.Helper()
	m := p.Read()
	if m.Method != method {
		p.T.Errorf("the back sent %q %s%s, want %q", m.Method, m.Params, m.Result, method)
	}
	return m
}

// Write sends one message.
func (p *Peer) Write(format string, args ...any) {
	p.T.Helper()
	if err := p.Conn.Write(fmt.Appendf(nil, format, args...)); err != nil {
		p.T.Errorf("writing to the back: %v", err)
	}
}

// Result answers a request.
func (p *Peer) Result(id wire.ID, result string) {
	p.T.Helper()
	p.Write(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// NewPeer returns the peer at the far end of a connection.
func NewPeer(t testing.TB, far transport.Conn) *Peer { return &Peer{t, far} }

// Pipes returns what dials a connection in memory, and the far end of each as newPeer has
// it; the channel is closed with the test.
func Pipes[P any](t testing.TB, newPeer func(testing.TB, transport.Conn) P) (dial func(context.Context) (transport.Conn, error), peers <-chan P) {
	far := make(chan P, 16)
	t.Cleanup(func() { close(far) })
	return func(context.Context) (transport.Conn, error) {
		near, end := transport.NewPipe()
		t.Cleanup(func() { _ = end.Close() })
		far <- newPeer(t, end)
		return near, nil
	}, far
}
