package back

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

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
	clock     *mcp.Clock
	leaveLane func() // nil, or lets the next call run; may be called again

	in         mcp.Intake // of its response
	mayBeAsked bool       // the server's questions may belong to it
	hosts      bool       // it is never sent itself: requests of the gateway are its parts

	// mu guards the fields below. It is held for the moment only.
	mu     sync.Mutex
	ended  bool // caller must not be used any more
	notes  noteQueue
	asking asking
	life   context.Context // see lifetime; nil until somebody asks
	die    context.CancelFunc

	asks   sync.WaitGroup // questions that are with the caller
	drains sync.WaitGroup // goroutines started for notes from another stream
}

// A noteQueue is what the caller of a call is still to be told.
type noteQueue struct {
	backlog  mcp.Backlog
	draining bool    // somebody is giving notes to the caller
	progress float64 // the last value; meaningless unless moved
	moved    bool
}

// asking is what is known of the questions that a call's server may have.
type asking struct {
	open     int       // questions that are with the caller
	waits    int       // of these, those that the server is taken to wait for
	last     time.Time // when the last of them came
	sent     bool      // the server may have heard of the call
	orphaned bool      // the server may still be at work on it though nobody waits
	named    bool      // its questions name it: those that don't are not its own
	missing  []byte    // the capability that a refused question needed; nil if none was
}

// newCall returns a request of a client that is yet to begin.
func newCall(req *mcp.Request, x mcp.Caller, leaveLane func()) *call {
	c := &call{
		Call: link.Call{Call: upstream.Call{Method: req.Method}},
		req:  req, caller: x, mayBeAsked: spec.MayAsk(req.Method), leaveLane: leaveLane,
		notes: noteQueue{backlog: mcp.Backlog{Room: mcp.NewRoom(req.Memory, req.Share)}},
	}
	c.Owner = c
	c.in.Use(req.Memory, req.Share)
	c.In = &c.in
	return c
}

// hostOf returns the client's call that c is, or is a part of; nil if there is none.
func hostOf(c *link.Call) *call {
	if c == nil {
		return nil
	}
	host, _ := c.Owner.(*call)
	return host
}

// clientCall returns the client's call that c is; nil if it is another request.
func clientCall(c *link.Call) *call {
	if host := hostOf(c); host != nil && &host.Call == c {
		return host
	}
	return nil
}

// Answered implements [link.Owner]: whoever waits for the call takes its answer.
func (c *call) Answered(*link.Call, upstream.Response) {}

// Deliver implements [link.Owner].
func (c *call) Deliver() { c.drain() }

// capabilities returns its client's.
func (c *call) capabilities() json.RawMessage { return c.req.Profile.Capabilities }

// token returns its caller's progress token; nil: no progress.
func (c *call) token() json.RawMessage { return c.req.ProgressToken }

// advance takes a progress value and reports whether it may be told: it must be
// greater than the last. Any progress starts the clock anew.
//
// Spec: 2026-07-28, basic/utilities/progress.
func (c *call) advance(value []byte) bool {
	v, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return false
	}
	c.clock.Restart()
	answered := c.IsSettled()
	c.mu.Lock()
	defer c.mu.Unlock()
	q := &c.notes
	if q.moved && v <= q.progress || answered {
		return false
	}
	q.progress, q.moved = v, true
	return true
}

// note queues a message for the caller and reports whether there was room.
func (c *call) note(method string, params []byte) bool {
	answered := c.IsSettled()
	c.mu.Lock()
	ok := !answered && !c.ended && c.notes.backlog.Add(mcp.Notification{Method: method, Params: params})
	short := c.notes.backlog.Short()
	c.mu.Unlock()
	if short {
		_ = c.notes.backlog.Room.Refuse() // counted and logged; the message is lost, as others beyond the bound
	}
	return ok
}

// drain gives the queued notes to the caller, in order, unless somebody else is
// at it: then that one gives these too.
func (c *call) drain() {
	for first := true; ; first = false {
		c.mu.Lock()
		if first && c.notes.draining || c.notes.backlog.Len() == 0 {
			if !first {
				c.notes.draining = false
			}
			c.mu.Unlock()
			return
		}
		c.notes.draining = true
		n, _ := c.notes.backlog.Next()
		c.mu.Unlock()
		// A caller that can't be reached is no reason to stop: ctx says so too.
		_ = c.caller.Notify(c.ctx, n)
	}
}

// drainSoon starts drain for notes that came on a stream which the goroutine
// serving the call does not read. It ends when the notes are given; end waits
// for it.
func (c *call) drainSoon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended && !c.notes.draining {
		c.drains.Go(c.drain)
	}
}

// end stops the clock, gives the caller what waits for it, and returns the
// response if there is one. x is not used after.
func (c *call) end() (upstream.Response, bool) {
	c.clock.Stop()
	c.drain()
	c.mu.Lock()
	c.ended = true // what is queued still is left to the goroutine that drains
	die := c.die
	c.mu.Unlock()
	if die != nil {
		die()
	}
	c.asks.Wait()
	c.drains.Wait()
	return c.Settled()
}

// lifetime returns a context that ends with the call: its open questions do, too.
func (c *call) lifetime() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life == nil {
		c.life, c.die = context.WithCancel(context.Background())
		if c.ended {
			c.die()
		}
	}
	return c.life
}

// park says that the caller is about to be asked: until unpark, the call's time
// does not count. waits says that the server does nothing for the call meanwhile,
// came when it asked.
// It reports false once the call has ended. Whoever parks a call has asks.Done
// called when x is not used any more.
func (c *call) park(waits bool, came time.Time) bool {
	answered := c.IsSettled()
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered || c.ended {
		return false
	}
	c.asks.Add(1)
	if c.asking.open++; c.asking.open == 1 {
		c.clock.Pause()
	}
	if waits {
		c.asking.waits++
		c.asking.last = came
	}
	return true
}

// unpark says that the server has been answered, or does not want to be.
func (c *call) unpark(waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking.open--; c.asking.open == 0 {
		c.clock.Resume()
	}
	if waits {
		c.asking.waits--
	}
}

// A callStage is what a call is at, as far as questions without a name go.
type callStage uint8

const (
	atEnd  callStage = iota // or never to be asked so
	atWork                  // the server is at work on it
	atRest                  // its caller is asked: the server waits
)

func (c *call) stage() callStage {
	answered := c.IsSettled()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.asking.sent || answered || c.ended || c.asking.named || !c.mayBeAsked:
		return atEnd
	case c.asking.waits == 0:
		return atWork
	}
	return atRest
}

// leaves says that the call is on its way to the server.
func (c *call) leaves() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking.sent = true
}

// hasLeft reports whether the server may have heard of the call.
func (c *call) hasLeft() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asking.sent
}

// orphan says that nobody waits for the call any more, and the server may not know.
func (c *call) orphan() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking.orphaned = true
}

func (c *call) isOrphaned() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asking.orphaned
}

// beingAsked reports whether a question is with the caller.
func (c *call) beingAsked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asking.open > 0
}

// mayHaveAsked reports whether the call can be that of a question which came at a
// time and was not answered yet: unless it has ended, or has asked since, or waits
// for the answer to an earlier question. What comes in one burst is not told
// apart.
func (c *call) mayHaveAsked(came time.Time) bool {
	switch c.stage() {
	case atEnd:
		return false
	case atRest:
		c.mu.Lock()
		defer c.mu.Unlock()
		return came.Sub(c.asking.last).Abs() <= burstWindow
	}
	return true
}

// name says that the call's questions name it from now on.
func (c *call) name() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking.named = true
}

// freeLane lets the next call run.
func (c *call) freeLane() {
	if c.leaveLane != nil {
		c.leaveLane()
	}
}

// lack notes that a question was refused for want of a capability.
func (c *call) lack(need []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking.missing == nil {
		c.asking.missing = need
	}
}

func (c *call) lacks() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asking.missing
}

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
