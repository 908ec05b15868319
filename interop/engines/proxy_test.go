package engines

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
)

// A proxy stands between an engine and its broker, and may stall: what is sent lies there.
type proxy struct {
	l    net.Listener
	to   string
	busy sync.WaitGroup

	mu      sync.Mutex    // guards the fields below
	flowing chan struct{} // closed while it does not stall
	conns   map[net.Conn]bool
	closed  bool
}

func newProxy(t *testing.T, port int) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, to: "127.0.0.1:" + strconv.Itoa(port), flowing: make(chan struct{}), conns: make(map[net.Conn]bool)}
	close(p.flowing)
	p.busy.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) addr() string { return p.l.Addr().String() }

func (p *proxy) stall(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flowing:
		if on {
			p.flowing = make(chan struct{})
		}
	default:
		if !on {
			close(p.flowing)
		}
	}
}

func (p *proxy) close() {
	p.stall(false)
	p.l.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.busy.Wait()
}

func (p *proxy) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", p.to)
		if err != nil || !p.keep(c, up) {
			c.Close()
			continue
		}
		p.busy.Go(func() { p.copy(up, c) })
		p.busy.Go(func() { p.copy(c, up) })
	}
}

func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
		if p.closed {
			c.Close()
		}
	}
	return !p.closed
}

func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		flowing := p.flowing
		p.mu.Unlock()
		<-flowing
		if _, werr := to.Write(buf[:n]); werr != nil || err != nil {
			return
		}
	}
}

// A network is what one engine reaches its servers by, wherever they say that they are. All
// of it stalls at once.
type network struct {
	t *testing.T

	mu      sync.Mutex // guards the fields below
	proxies map[string]*proxy
	stalled bool
}

func newNetwork(t *testing.T) *network { return &network{t: t, proxies: make(map[string]*proxy)} }

func (n *network) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	p, err := n.proxy(addr)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "tcp", p.addr())
}

func (n *network) proxy(addr string) (*proxy, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	to, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proxies[addr] == nil {
		n.proxies[addr] = newProxy(n.t, to)
		n.proxies[addr].stall(n.stalled)
	}
	return n.proxies[addr], nil
}

func (n *network) stall(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stalled = on
	for _, p := range n.proxies {
		p.stall(on)
	}
}
