package engines

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
)

// A proxy stands before a broker.
type proxy struct {
	*replicastest.Proxy
	addr string
}

func newProxy(t *testing.T, port int) proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	to := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	return proxy{replicastest.NewProxy(t, l, func() (net.Conn, error) { return net.Dial("tcp", to) }), l.Addr().String()}
}

// A network is what one engine reaches its servers by, wherever they say that they are. All
// of it stalls at once.
type network struct {
	t *testing.T

	mu      sync.Mutex // guards the fields below
	proxies map[string]proxy
	stalled bool
}

func newNetwork(t *testing.T) *network { return &network{t: t, proxies: make(map[string]proxy)} }

func (n *network) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	p, err := n.proxy(addr)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "tcp", p.addr)
}

func (n *network) proxy(addr string) (proxy, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return proxy{}, err
	}
	to, err := strconv.Atoi(port)
	if err != nil {
		return proxy{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proxies[addr].Proxy == nil {
		n.proxies[addr] = newProxy(n.t, to)
		n.proxies[addr].Stall(n.stalled)
	}
	return n.proxies[addr], nil
}

func (n *network) stall(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stalled = on
	for _, p := range n.proxies {
		p.Stall(on)
	}
}
