package http1

import (
	"sync"
	"time"
)

// A pool keeps idle connections. It has no goroutine: a timer runs as long as there are
// connections to close later.
type pool struct {
	// Set by NewTransport, read-only after.
	most    int           // idle connections per address; negative: none
	timeout time.Duration // zero: no timeout

	// mu guards the fields below. It is not held while a connection is closed or peeked
	// at.
	mu    sync.Mutex
	idle  map[string][]*conn // by address; the most recently used last
	timer *time.Timer        // nil before the first put
	armed bool
}

// get returns the most recently used connection that is still open, or nil. The caller
// owns it. secure selects connections with TLS.
func (p *pool) get(addr string, secure bool) *conn {
	for {
		c := p.pop(addr)
		if c == nil || c.isSecure() == secure && !p.isOld(c, time.Now()) && c.isOpen() {
			return c
		}
		_ = c.nc.Close() // most likely, the server has closed it
	}
}

func (p *pool) pop(addr string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[addr]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	list[len(list)-1] = nil
	p.idle[addr] = list[:len(list)-1]
	return c
}

func (p *pool) isOld(c *conn, now time.Time) bool {
	return p.timeout > 0 && now.Sub(c.idle) >= p.timeout
}

// put adds an idle connection, or closes it if there are enough.
func (p *pool) put(c *conn) {
	c.idle = time.Now()
	if !p.add(c) {
		_ = c.nc.Close() // the pool has enough
	}
}

func (p *pool) add(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[c.addr]
	if len(list) >= p.most {
		return false
	}
	if p.idle == nil {
		p.idle = make(map[string][]*conn)
	}
	p.idle[c.addr] = append(list, c)
	if p.timeout > 0 && !p.armed {
		p.armLocked(p.timeout)
	}
	return true
}

func (p *pool) armLocked(d time.Duration) {
	p.armed = true
	if p.timer == nil {
		p.timer = time.AfterFunc(d, p.sweep)
		return
	}
	p.timer.Reset(d)
}

// sweep closes the connections that have been idle for too long. It runs on the timer's
// goroutine.
func (p *pool) sweep() { closeAll(p.takeOld(time.Now())) }

// takeOld removes the connections that have been idle for too long, and sets the timer
// for the next one.
func (p *pool) takeOld(now time.Time) []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = false
	var old []*conn
	next := p.timeout
	for addr, list := range p.idle {
		n := 0
		for n < len(list) && p.isOld(list[n], now) {
			n++
		}
		old = append(old, list[:n]...)
		if n == len(list) {
			delete(p.idle, addr)
			continue
		}
		p.idle[addr] = append([]*conn(nil), list[n:]...)
		next = min(next, p.timeout-now.Sub(list[n].idle))
	}
	if len(p.idle) > 0 {
		p.armLocked(next)
	}
	return old
}

func (p *pool) closeAll() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	if p.timer != nil {
		p.armed = false
		p.timer.Stop()
	}
	p.mu.Unlock()
	for _, list := range idle {
		closeAll(list)
	}
}

func closeAll(list []*conn) {
	for _, c := range list {
		_ = c.nc.Close() // no request is affected
	}
}
