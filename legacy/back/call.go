package back

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A call is one request in flight on a session.
type call struct {
	// Set by session.begin, read-only after.
	id     int64
	method string
	level  spec.LogLevel   // of the messages its caller wants
	token  json.RawMessage // its caller's progress token; nil: no progress
	x      mcp.Caller      // nil for the gateway's own requests
	req    *mcp.Request    // that x is of
	ctx    context.Context // its caller's, for x alone: a call is made and ends with it, as an http.Request does
	cancel context.CancelCauseFunc
	clock  *mcp.Clock // nil: the context alone bounds the call

	capabilities json.RawMessage // its client's
	mayBeAsked   bool            // the server's questions may belong to it
	leaveLane    func()          // nil, or lets the next call run; may be called again
	in           mcp.Intake      // of its answer
	hosts        bool            // it is never sent itself: requests of the gateway are its parts
	relayed      *relayed        // what passes under a relay; nil for other calls
	owner        *call           // the client's call that this request of the gateway is a part of; nil if none

	// wake has capacity 1. It tells the goroutine that serves the call of notes;
	// nil where that goroutine can't be told, see link.wakes.
	wake chan struct{}

	// taken has capacity 1. It tells who wants to send more that the server has
	// begun to answer the POST of a call; nil if nobody does.
	taken chan struct{}

	// mu guards the fields below. It is held for the moment only.
	mu       sync.Mutex
	answered bool
	ended    bool // x must not be used any more
	answer   answer
	notes    mcp.Backlog // not yet given to x
	draining bool        // somebody is giving notes to x
	progress float64     // the last value; meaningless unless moved
	moved    bool
	asked    int             // questions that are with the caller
	waits    int             // of these, those that the server is taken to wait for
	lastAsks time.Time       // when the last of them came
	sent     bool            // the server may have heard of it
	strayed  bool            // the server may still be at work on it though nobody waits
	named    bool            // its questions name it: those that don't are not its own
	life     context.Context // see lifetime; nil until somebody asks
	die      context.CancelFunc
	missing  []byte // the capability that a refused question needed; nil if none was

	asks   sync.WaitGroup // questions that are with the caller
	drains sync.WaitGroup // goroutines started for notes from another stream
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

// settle takes the response. It reports false, and leaves a to its caller, if
// there was one before.
func (c *call) settle(a answer) bool {
	c.mu.Lock()
	first := !c.answered
	if first {
		c.answered, c.answer = true, a
	}
	c.mu.Unlock()
	if first && c.relayed != nil {
		c.relayed.answered(a)
	}
	return first
}

// wasTaken says that the server has begun to answer the call's POST.
func (c *call) wasTaken() {
	select {
	case c.taken <- struct{}{}:
	default: // nobody waits for it
	}
}

// settled returns the response, if there is one yet.
func (c *call) settled() (answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answer, c.answered
}

// advance takes a progress value and reports whether it may be told: it must be
// greater than the last. Any progress starts the clock anew.
//
// Spec: 2026-07-28, basic/utilities/progress.
func (c *call) advance(value []byte) bool {
	v, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return false
	}
	if c.clock != nil {
		c.clock.Restart()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.moved && v <= c.progress || c.answered {
		return false
	}
	c.progress, c.moved = v, true
	return true
}

// note queues a message for the caller and reports whether there was room.
func (c *call) note(method string, params []byte) bool {
	c.mu.Lock()
	ok := !c.answered && !c.ended && c.notes.Add(mcp.Notification{Method: method, Params: params})
	short := c.notes.Short()
	c.mu.Unlock()
	if short {
		_ = c.notes.Room.Refuse() // counted and logged; the message is lost, as others beyond the bound
	}
	return ok
}

// drain gives the queued notes to the caller, in order, unless somebody else is
// at it: then that one gives these too.
func (c *call) drain() {
	for first := true; ; first = false {
		c.mu.Lock()
		if first && c.draining || c.notes.Len() == 0 {
			if !first {
				c.draining = false
			}
			c.mu.Unlock()
			return
		}
		c.draining = true
		n, _ := c.notes.Next()
		c.mu.Unlock()
		// A caller that can't be reached is no reason to stop: ctx says so too.
		_ = c.x.Notify(c.ctx, n)
	}
}

// drainSoon starts drain for notes that came on a stream which the goroutine
// serving the call does not read. It ends when the notes are given; end waits
// for it.
func (c *call) drainSoon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended && !c.draining {
		c.drains.Go(c.drain)
	}
}

// end stops the clock, gives the caller what waits for it, and returns the
// response if there is one. x is not used after.
func (c *call) end() (answer, bool) {
	if c.clock != nil {
		c.clock.Stop()
	}
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
	return c.settled()
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered || c.ended {
		return false
	}
	c.asks.Add(1)
	if c.asked++; c.asked == 1 && c.clock != nil {
		c.clock.Pause()
	}
	if waits {
		c.waits++
		c.lastAsks = came
	}
	return true
}

// unpark says that the server has been answered, or does not want to be.
func (c *call) unpark(waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked--; c.asked == 0 && c.clock != nil {
		c.clock.Resume()
	}
	if waits {
		c.waits--
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
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.sent || c.answered || c.ended || c.named || !c.mayBeAsked:
		return atEnd
	case c.waits == 0:
		return atWork
	}
	return atRest
}

// leaves says that the call is on its way to the server.
func (c *call) leaves() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = true
}

// hasLeft reports whether the server may have heard of the call.
func (c *call) hasLeft() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent
}

// stray says that nobody waits for the call any more, and the server may not know.
func (c *call) stray() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.strayed = true
}

func (c *call) hasStrayed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.strayed
}

// beingAsked reports whether a question is with the caller.
func (c *call) beingAsked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked > 0
}

// host returns the client's call that c is, or is a part of; nil for nil.
func (c *call) host() *call {
	if c != nil && c.owner != nil {
		return c.owner
	}
	return c
}

// mayHaveAsked reports whether the call can be that of a question which came at a
// time and was not answered yet: unless it has ended, or has asked since, or waits
// for the answer to an earlier question. What comes on one breath is not told
// apart.
func (c *call) mayHaveAsked(came time.Time) bool {
	switch c.stage() {
	case atEnd:
		return false
	case atRest:
		c.mu.Lock()
		defer c.mu.Unlock()
		return came.Sub(c.lastAsks).Abs() <= breath
	}
	return true
}

// name says that the call's questions name it from now on.
func (c *call) name() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.named = true
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
	if c.missing == nil {
		c.missing = need
	}
}

func (c *call) lacks() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.missing
}

// upstreamToken returns the progress token that the server is given, zero for
// none.
func (c *call) upstreamToken() int64 {
	if c.token == nil {
		return 0
	}
	return c.id
}

// ownToken returns a copy of params with the caller's own progress token.
func (c *call) ownToken(params []byte) []byte {
	return wire.AppendEdited(nil, params, wire.Edit{Name: spec.MetaProgressToken, Value: c.token})
}
