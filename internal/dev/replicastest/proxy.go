package replicastest

import (
	"net"
	"sync"
	"testing"
)

// A Proxy stands between an engine and its broker, and may stall: what is sent lies there.
type Proxy struct {
	l    net.Listener
	dial func() (net.Conn, error)
	busy sync.WaitGroup

	mu      sync.Mutex    // guards the fields below
	flowing chan struct{} // closed while it does not stall
	conns   map[net.Conn]bool
	closed  bool
}

// NewProxy has what connects to l connected to what dial returns, until the test ends.
func NewProxy(t testing.TB, l net.Listener, dial func() (net.Conn, error)) *Proxy {
	t.Helper()
	p := &Proxy{l: l, dial: dial, flowing: make(chan struct{}), conns: make(map[net.Conn]bool)}
	close(p.flowing)
	p.busy.Go(p.accept) // ends by close, as do all that it starts
	t.Cleanup(p.close)
	return p
}

// Stall has nothing pass, or all go on.
func (p *Proxy) Stall(on bool) {
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

func (p *Proxy) close() {
	p.Stall(false)
	p.l.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.busy.Wait()
}

func (p *Proxy) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		up, err := p.dial()
		if err != nil || !p.keep(c, up) {
			c.Close()
			continue
		}
		p.busy.Go(func() { p.copy(up, c) })
		p.busy.Go(func() { p.copy(c, up) })
	}
}

func (p *Proxy) keep(conns ...net.Conn) bool {
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

func (p *Proxy) copy(to, from net.Conn) {
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
