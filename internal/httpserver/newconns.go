package httpserver

import (
	"container/list"
	"net"
	"sync"
)

// newConns are the connections that have sent no request yet, in the order of their
// arrival. It is safe for concurrent use.
type newConns struct {
	most int // read-only

	// mu guards the fields below. It is held for map work only.
	mu    sync.Mutex
	order list.List // of net.Conn, the oldest first
	at    map[net.Conn]*list.Element
	ended bool // all were closed, and so are those to come
}

// add adds c, and returns the connection to close for it: the oldest if there are too
// many, c itself after end, or nil.
func (n *newConns) add(c net.Conn) (closed net.Conn, full bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return c, false
	}
	if n.at == nil {
		n.at = make(map[net.Conn]*list.Element)
	}
	n.at[c] = n.order.PushBack(c)
	if n.order.Len() <= n.most {
		return nil, false
	}
	closed = n.order.Remove(n.order.Front()).(net.Conn)
	delete(n.at, closed)
	return closed, true
}

// remove removes c, if it is there.
func (n *newConns) remove(c net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e, ok := n.at[c]; ok {
		n.order.Remove(e)
		delete(n.at, c)
	}
}

// end returns the connections to close: all, and by add those to come.
func (n *newConns) end() []net.Conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	var all []net.Conn
	for c := range n.at {
		all = append(all, c)
	}
	clear(n.at)
	n.order.Init()
	return all
}
