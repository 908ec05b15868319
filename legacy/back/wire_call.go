package back

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A wireCall is one request in flight on a session: what links know of it.
type wireCall struct {
	// Set before the request is sent, read-only after.
	id     int64
	method string
	cancel context.CancelCauseFunc
	in     mcp.Intake // of its answer
	owner  callOwner  // nil for a request of the gateway's own that is part of no call
	passed bool       // a client's own message: its answer goes to the client as it is

	// wake has capacity 1. It tells the goroutine that serves the call to have the
	// owner deliver; nil where that goroutine can't be told, see link.wakes.
	wake chan struct{}

	// taken has capacity 1. It tells who wants to send more that the server has
	// begun to answer the POST of a call; nil if nobody does.
	taken chan struct{}

	// mu guards the fields below. It is a leaf.
	mu       sync.Mutex
	answered bool
	answer   answer
}

// A callOwner is whom a request is made for: the client's call that it is, or is a
// part of.
type callOwner interface {
	// answered takes the response, on the goroutine that has read it.
	answered(c *wireCall, a answer)
	// deliver gives the caller the notifications that are queued for it.
	deliver()
}

// An answer is a response as far as it is not about ids.
type answer struct {
	text    []byte // as it came, for a relay; nil if it could not be read
	result  json.RawMessage
	outline *wire.Outline // of result; may be nil
	err     *wire.Error
	extra   []byte
	release func() // gives the bytes back; may be nil
}

// answerOf returns the response in m; release, which may be nil, gives back the
// text that m aliases.
func answerOf(m *wire.Message, release func()) answer {
	return answer{text: m.Text, result: m.Result, outline: m.Outline, err: m.Error, extra: m.Extra, release: release}
}

// takeError gives the answer's bytes back and returns its error, which does not
// alias them any more.
func (a *answer) takeError() *wire.Error {
	e := *a.err
	e.Data = bytes.Clone(e.Data)
	a.free()
	return &e
}

// free gives the answer's bytes back.
func (a *answer) free() {
	if a.release != nil {
		a.release()
	}
}

// settle takes the response. It reports false, and leaves a to its caller, if
// there was one before.
func (c *wireCall) settle(a answer) bool {
	c.mu.Lock()
	first := !c.answered
	if first {
		c.answered, c.answer = true, a
	}
	c.mu.Unlock()
	if first && c.owner != nil {
		c.owner.answered(c, a)
	}
	return first
}

// settled returns the response, if there is one yet.
func (c *wireCall) settled() (answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answer, c.answered
}

// isSettled reports whether there is a response.
func (c *wireCall) isSettled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered
}

// wasTaken says that the server has begun to answer the call's POST.
func (c *wireCall) wasTaken() {
	select {
	case c.taken <- struct{}{}:
	default: // nobody waits for it
	}
}

// is reports whether id is the call's.
func (c *wireCall) is(id wire.ID) bool {
	n, ok := id.Int()
	return ok && n == c.id
}
