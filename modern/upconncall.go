package modern

import (
	"context"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
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
func (pc *connCall) settle(a answer, err error) bool {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	if pc.settled {
		return false
	}
	pc.settled, pc.answer, pc.err = true, a, err
	close(pc.done)
	return true
}

// queue makes a message wait for the caller and reports whether there was room.
// When there is none the newest progress takes the place of the progress before it,
// which it outdates.
func (pc *connCall) queue(n exchange.Notification) bool {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	if pc.settled {
		return false
	}
	if len(pc.notes) >= maxNotes && !pc.outdateLocked(n.Method) {
		return false
	}
	pc.notes = append(pc.notes, n)
	select {
	case pc.wake <- struct{}{}:
	default: // it knows
	}
	return true
}

// outdateLocked takes back the last progress that waits, if n is progress too.
func (pc *connCall) outdateLocked(method string) bool {
	for i := len(pc.notes) - 1; i >= 0 && method == spec.NotifyProgress; i-- {
		if pc.notes[i].Method == method {
			pc.notes = append(pc.notes[:i], pc.notes[i+1:]...)
			return true
		}
	}
	return false
}

// drain gives what waits to the caller, in order.
func (pc *connCall) drain(ctx context.Context) {
	for {
		pc.mu.Lock()
		notes := pc.notes
		pc.notes = nil
		pc.mu.Unlock()
		if len(notes) == 0 {
			return
		}
		for _, n := range notes {
			// A caller that can't be reached is no reason to stop: ctx says so too.
			_ = pc.of.x.Notify(ctx, n)
		}
	}
}

// leadingID returns the id that stands in the first bytes of a response, if its
// members before the result tell. start is cut off somewhere, and not checked.
func leadingID(start []byte) wire.ID {
	for cut := len(start); cut > 0; cut-- {
		if start[cut-1] != ',' {
			continue
		}
		head := append(append([]byte(nil), start[:cut-1]...), '}')
		if wire.Check(head, 0) == nil {
			if wire.Get(head, "method") != nil {
				return wire.ID{}
			}
			id, _ := wire.ParseID(wire.Get(head, "id"))
			return id
		}
	}
	return wire.ID{}
}
