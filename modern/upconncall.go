package modern

import (
	"context"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// maxNotes bounds the messages that wait for a slow caller.
const maxNotes = 256

// A connCall is a request in flight on a connection.
type connCall struct {
	*upcall
	wake chan struct{} // capacity 1: there are notes
	done chan struct{} // closed when answer and err are set

	answer answer
	err    error

	// mu guards the fields below.
	mu      sync.Mutex
	settled bool
	notes   []exchange.Notification // not yet given to the caller
}

func newConnCall(c *upcall) *connCall {
	return &connCall{upcall: c, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// settle ends the call. It reports false if it had ended before.
func (cc *connCall) settle(a answer, err error) bool {
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
func (cc *connCall) queue(n exchange.Notification) bool {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.settled {
		return false
	}
	if len(cc.notes) >= maxNotes && !cc.outdateLocked(n.Method) {
		return false
	}
	cc.notes = append(cc.notes, n)
	select {
	case cc.wake <- struct{}{}:
	default: // it knows
	}
	return true
}

// outdateLocked takes back the last progress that waits, if n is progress too.
func (cc *connCall) outdateLocked(method string) bool {
	for i := len(cc.notes) - 1; i >= 0 && method == spec.NotifyProgress; i-- {
		if cc.notes[i].Method == method {
			cc.notes = append(cc.notes[:i], cc.notes[i+1:]...)
			return true
		}
	}
	return false
}

// drain gives what waits to the caller, in order.
func (cc *connCall) drain(ctx context.Context) {
	for {
		cc.mu.Lock()
		if len(cc.notes) == 0 {
			cc.mu.Unlock()
			return
		}
		n := cc.notes[0]
		cc.notes[0] = exchange.Notification{}
		cc.notes = cc.notes[1:]
		cc.mu.Unlock()
		// A caller that can't be reached is no reason to stop: ctx says so too.
		_ = cc.of.x.Notify(ctx, n)
	}
}
