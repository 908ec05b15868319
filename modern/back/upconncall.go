package back

import (
	"context"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// Of the messages that wait for a slow caller: how many there may be; and for that of a
// stream, together with the bytes of their params.
const (
	maxNotes       = 256
	maxStreamNotes = 4096
	maxStreamBytes = 1 << 20
)

// A connCall is a request in flight on a connection.
type connCall struct {
	*upcall
	wake chan struct{} // capacity 1: there are notes
	room chan struct{} // capacity 1: there are fewer than before
	done chan struct{} // closed when answer and err are set

	answer upstream.Response
	err    error

	// mu guards the fields below.
	mu      sync.Mutex
	settled bool
	notes   []mcp.Notification // not yet given to the caller
	bytes   int                // of the params in notes
	stalled time.Duration      // that the connection was held up, less what the caller made good
}

func newConnCall(c *upcall) *connCall {
	return &connCall{upcall: c, wake: make(chan struct{}, 1), room: make(chan struct{}, 1), done: make(chan struct{})}
}

// settle ends the call. It reports false if it had ended before.
func (cc *connCall) settle(a upstream.Response, err error) bool {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.settled {
		return false
	}
	cc.settled, cc.answer, cc.err = true, a, err
	close(cc.done)
	return true
}

// queue makes a message wait for the caller and reports whether there was room.
// When there is none the newest progress takes the place of the progress before it,
// which it outdates.
func (cc *connCall) queue(n mcp.Notification) bool {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.settled {
		return false
	}
	if len(cc.notes) >= maxNotes && !cc.outdateLocked(n.Method) {
		return false
	}
	cc.addLocked(n)
	return true
}

// offer is queue for a message that nothing can take the place of. It reports false if
// the caller has to take others first.
func (cc *connCall) offer(n mcp.Notification) bool {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	switch waits := len(cc.notes); {
	case cc.settled: // nobody needs it
	case waits >= maxStreamNotes, waits > 0 && cc.bytes+len(n.Params) > maxStreamBytes:
		return false
	default:
		cc.addLocked(n)
	}
	return true
}

func (cc *connCall) addLocked(n mcp.Notification) {
	cc.notes = append(cc.notes, n)
	cc.bytes += len(n.Params)
	select {
	case cc.wake <- struct{}{}:
	default: // it knows
	}
}

// outdateLocked takes back the last progress that waits, if n is progress too.
func (cc *connCall) outdateLocked(method string) bool {
	for i := len(cc.notes) - 1; i >= 0 && method == spec.NotifyProgress; i-- {
		if cc.notes[i].Method == method {
			cc.bytes -= len(cc.notes[i].Params)
			cc.notes = append(cc.notes[:i], cc.notes[i+1:]...)
			return true
		}
	}
	return false
}

// drain gives what waits to the caller, in order, as long as it is there: a server may
// send without a pause.
func (cc *connCall) drain(ctx context.Context) {
	for ctx.Err() == nil {
		n, ok := cc.next()
		if !ok {
			return
		}
		cc.pass(ctx, n)
	}
}

// next takes the message that has waited longest. It reports false if there is none.
func (cc *connCall) next() (n mcp.Notification, ok bool) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if len(cc.notes) == 0 {
		cc.stalled = 0
		return n, false
	}
	n, cc.notes[0] = cc.notes[0], n
	cc.notes = cc.notes[1:]
	cc.bytes -= len(n.Params)
	cc.stalled = max(0, cc.stalled-worth(n))
	select {
	case cc.room <- struct{}{}:
	default: // it is known
	}
	return n, true
}
