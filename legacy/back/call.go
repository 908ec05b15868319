package back

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
	"github.com/mcpbridge/mcpbridge/legacy/tasks"
)

// A call is one request of a client on a session.
type call struct {
	link.Call

	// Set by newCall and session.begin, read-only after.
	req       *mcp.Request
	caller    mcp.Caller
	ctx       context.Context // the caller's; only for caller, since a call ends with it
	clock     mcp.Clock
	leaveLane func() // frees the lane, if it may while the call is parked; may be called again

	in         mcp.Intake // reserves memory for the response
	mayBeAsked bool       // the server may request input for it
	hasParts   bool       // it is not sent itself: requests of the gateway are its parts
	ownTask    []byte     // what it says of the task that its client wants; nil for nothing

	held *tasks.Held // the task that its client holds; nil for none

	sent        atomic.Bool // it may have been sent
	orphaned    atomic.Bool // it was cancelled, and the server may still work on it
	namesInputs atomic.Bool // its input requests name it: others are not its own

	// mu guards the fields below. It is held for short work in memory only.
	mu            sync.Mutex
	ended         bool // caller must not be used any more
	notifications notificationQueue
	inputs        callInputs

	withCaller sync.WaitGroup // input requests that the caller is handling
	drains     sync.WaitGroup // goroutines for notifications that arrived on another stream
}

// newCall returns a call for a client's request. session.begin registers it.
func newCall(req *mcp.Request, caller mcp.Caller, leaveLane func()) *call {
	c := &call{
		Call: link.Call{Call: upstream.Call{Method: req.Method, Behalf: upstream.BehalfOf(req)}},
		req:  req, caller: caller, mayBeAsked: spec.MayAsk(req.Method), leaveLane: leaveLane,
		notifications: notificationQueue{backlog: mcp.Backlog{Memory: mcp.NewReservation(req.Memory, req.Share)}},
	}
	c.Owner = c
	c.in.Use(req.Memory, req.Share)
	c.In = &c.in
	return c
}

// clientCallOf returns the client's call that c is, or is a part of; nil if there is none.
func clientCallOf(c *upstream.Call) *call {
	if c == nil {
		return nil
	}
	host, _ := c.Owner.(*call)
	return host
}

// clientCall returns the client's call that c is; nil if c is another request.
func clientCall(c *upstream.Call) *call {
	if host := clientCallOf(c); host != nil && &host.Call.Call == c {
		return host
	}
	return nil
}

// Answered implements [upstream.Owner]: the goroutine that waits for the call takes the
// response.
func (c *call) Answered(*upstream.Call, upstream.Response) {}

// Deliver implements [upstream.Owner].
func (c *call) Deliver() { c.drain() }

// capabilities returns the client's capabilities.
func (c *call) capabilities() json.RawMessage { return c.req.Profile.Capabilities }

// token returns the client's progress token; nil for no progress.
func (c *call) token() json.RawMessage { return c.req.ProgressToken }

// upstreamToken returns the progress token for the server, zero for none.
func (c *call) upstreamToken() int64 {
	if c.token() == nil {
		return 0
	}
	return c.ID
}

// ownToken returns a copy of params with the client's own progress token.
func (c *call) ownToken(params []byte) []byte {
	return wire.AppendEdited(nil, params, wire.Edit{Name: spec.MetaProgressToken, Value: c.token()})
}

// end stops the clock, passes pending notifications to the caller, and returns the
// response if there is one. After that, caller is not used any more.
func (c *call) end() (upstream.Response, bool) {
	c.clock.Stop()
	c.drain()
	c.mu.Lock()
	c.ended = true // the goroutine that drains passes on what is still queued
	die := c.inputs.cancel
	c.mu.Unlock()
	if die != nil {
		die()
	}
	c.withCaller.Wait()
	c.drains.Wait()
	return c.Settled()
}
