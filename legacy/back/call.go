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
)

// A call is one request of a client on a session.
type call struct {
	link.Call

	// Set by newCall and session.begin, read-only after.
	req       *mcp.Request
	caller    mcp.Caller
	ctx       context.Context // its caller's, for caller alone: a call is made and ends with it, as an http.Request does
	clock     mcp.Clock
	leaveLane func() // nil, or lets the next call run; may be called again

	in         mcp.Intake // of its response
	mayBeAsked bool       // the server's inputs may belong to it
	hasParts   bool       // it is never sent itself: requests of the gateway are its parts

	sent        atomic.Bool // the server may have heard of it
	orphaned    atomic.Bool // the server may still be at work on it though nobody waits
	namesInputs atomic.Bool // its inputs name it: those that don't are not its own

	// mu guards the fields below. It is held for the moment only.
	mu            sync.Mutex
	ended         bool // caller must not be used any more
	notifications notificationQueue
	inputs        callInputs

	withCaller sync.WaitGroup // inputs that are with the caller
	drains     sync.WaitGroup // goroutines started for notes from another stream
}

// newCall returns a request of a client that is yet to begin.
func newCall(req *mcp.Request, x mcp.Caller, leaveLane func()) *call {
	c := &call{
		Call: link.Call{Call: upstream.Call{Method: req.Method, Behalf: upstream.BehalfOf(req)}},
		req:  req, caller: x, mayBeAsked: spec.MayAsk(req.Method), leaveLane: leaveLane,
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

// clientCall returns the client's call that c is; nil if it is another request.
func clientCall(c *upstream.Call) *call {
	if host := clientCallOf(c); host != nil && &host.Call.Call == c {
		return host
	}
	return nil
}

// Answered implements [upstream.Owner]: whoever waits for the call takes its answer.
func (c *call) Answered(*upstream.Call, upstream.Response) {}

// Deliver implements [upstream.Owner].
func (c *call) Deliver() { c.drain() }

// capabilities returns its client's.
func (c *call) capabilities() json.RawMessage { return c.req.Profile.Capabilities }

// token returns its caller's progress token; nil: no progress.
func (c *call) token() json.RawMessage { return c.req.ProgressToken }

// upstreamToken returns the progress token that the server is given, zero for
// none.
func (c *call) upstreamToken() int64 {
	if c.token() == nil {
		return 0
	}
	return c.ID
}

// ownToken returns a copy of params with the caller's own progress token.
func (c *call) ownToken(params []byte) []byte {
	return wire.AppendEdited(nil, params, wire.Edit{Name: spec.MetaProgressToken, Value: c.token()})
}

// end stops the clock, gives the caller what waits for it, and returns the
// response if there is one. caller is not used after.
func (c *call) end() (upstream.Response, bool) {
	c.clock.Stop()
	c.drain()
	c.mu.Lock()
	c.ended = true // what is queued still is left to the goroutine that drains
	die := c.inputs.cancel
	c.mu.Unlock()
	if die != nil {
		die()
	}
	c.withCaller.Wait()
	c.drains.Wait()
	return c.Settled()
}

// freeLane lets the next call run.
func (c *call) freeLane() {
	if c.leaveLane != nil {
		c.leaveLane()
	}
}
