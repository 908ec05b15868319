package relay

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
)

const (
	// takeTimeout bounds how long the next message waits until the server has begun to
	// answer the POST of a call over HTTP+SSE, or of a notification or response over HTTP.
	// That keeps the order; but some servers answer a POST only when they have run the
	// request. On a connection it bounds how long the next message waits until this one is
	// written: after that it waits behind it, and the end of the client is noticed.
	takeTimeout = 200 * time.Millisecond
	// initializedTimeout is takeTimeout for notifications/initialized on a connection: the server,
	// which has just answered, works on nothing, and refuses what overtakes it.
	initializedTimeout = 10 * time.Second
	// overtakeTimeout bounds how long the cancellation of a call waits for that, from the
	// begin of the call. Directly, nothing waits.
	overtakeTimeout = 40 * time.Millisecond
	// restTimeout bounds the wait for the end of a stream after the response, if no other
	// request waits for its connection.
	restTimeout = time.Second
)

// errClientEnded is the cause when a call ends because its client's session has ended.
var errClientEnded = errors.New("the session has ended")

// A call is a forwarded request of the client. The goroutine that reads a message of the
// server also forwards it, which keeps the order.
type call struct {
	link.Call
	s     *Session
	id    wire.ID // the client's id
	token wire.ID // progress token; zero if there is none
	out   mcp.RelayedCall
	in    mcp.Intake // of the response
	begun time.Time

	cancelled atomic.Bool // by the client; the server has been told, or is being told
}

// calls contains the calls in flight.
type calls struct {
	mu      sync.Mutex // guards the fields below; a leaf
	byID    map[wire.ID]*call
	byToken map[wire.ID]*call
}

func (t *calls) add(c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[c.id] = c
	if !c.token.IsZero() {
		t.byToken[c.token] = c
	}
}

// remove removes c, and reports whether it was still in flight. Only one goroutine gets
// true.
func (t *calls) remove(c *call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[c.id] != c {
		return false
	}
	delete(t.byID, c.id)
	if t.byToken[c.token] == c {
		delete(t.byToken, c.token)
	}
	return true
}

// find returns the call with an id of the client, or nil.
func (t *calls) find(id wire.ID) *call {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// ofToken returns the call with a progress token, or nil.
func (t *calls) ofToken(token wire.ID) *call {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byToken[token]
}

// sole returns the only call that its client waits for; nil if there are none or several.
func (t *calls) sole() (sole *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.byID {
		switch {
		case c.cancelled.Load():
		case sole != nil:
			return nil
		default:
			sole = c
		}
	}
	return sole
}

// Call implements [mcp.Relay].
func (s *Session) Call(m *wire.Message, o mcp.RelayedCall) {
	if spec.LeavesState(m.Method) {
		s.state()
	}
	c := s.newCall(m, o)
	// It ends by c.Cancel, which run calls.
	ctx, stop := context.WithTimeoutCause(context.Background(), s.opts.Settings.Timeouts.Max, upstream.ErrTooLong)
	ctx = c.Begin(ctx)
	err := s.link.Calls.Add(&c.Call) // now it has an id
	if err == nil {
		s.opts.Observe(&c.Call.Call, o.Trace(), spec.Legacy, "")
	}
	s.calls.add(c) // Close can cancel it, and the server ask for it
	if err != nil {
		c.Cancel(nil)
		stop()
		c.lost(err)
		return
	}
	if r, ok := c.Settled(); ok { // by a server that guesses ids, before the request was sent
		c.Answered(nil, r)
	}
	frame := withID(traced(m, c.Exchange), wire.NumberID(c.ID))
	if !s.link.Start(func() { c.run(ctx, frame); stop() }) {
		s.link.Calls.Remove(&c.Call)
		c.Cancel(nil)
		stop()
		c.lost(&upstream.Failure{Cause: s.link.Err(), Fate: upstream.NotSent, Lost: true})
		return
	}
	if s.link.Ordered() || s.link.IsSSE() { // in the order of the calls
		c.awaitTaken(ctx, takeTimeout)
	}
}

func (s *Session) newCall(m *wire.Message, o mcp.RelayedCall) *call {
	c := &call{s: s, id: m.ID, out: o, begun: time.Now()}
	c.token, _ = wire.ParseID(wire.Get(wire.Get(m.Params, "_meta"), spec.MetaProgressToken)) // zero if there is none
	c.in.Use(s.memory, s.share)
	if id := o.Identity(); id != nil {
		c.Behalf = upstream.Behalf{Principal: id.Principal, Identity: id}
	}
	c.Method, c.Owner, c.Passes, c.In, c.Patience = m.Method, c, true, &c.in, restTimeout
	c.Taken = make(chan struct{})
	return c
}

// awaitTaken waits until the server has begun to answer the POST of the call, or has
// answered the call, or until it is written to a connection, for at most d from the begin of the
// call.
func (c *call) awaitTaken(ctx context.Context, d time.Duration) {
	late := time.NewTimer(wake.Positive(d - time.Since(c.begun)))
	defer late.Stop()
	select {
	case <-c.Taken:
	case <-ctx.Done():
	case <-late.C:
	}
}

// run waits for the end of a call.
func (c *call) run(ctx context.Context, frame []byte) {
	wake.GrowStack()
	if err := c.s.awaitPlace(ctx); err != nil {
		c.Withdrawn = true
		close(c.Taken)
		c.in.Close()
		c.forget(err)
		return
	}
	c.Exchange.Sent(frame)
	err := c.s.link.Do(ctx, &c.Call, frame)
	if r, ok := c.Settled(); ok { // the response was forwarded
		r = c.s.link.Calls.Finish(&c.Call, r)
		r.Free() // this may read the rest of a stream
		return
	}
	defer c.in.Close()
	cause := context.Cause(ctx)
	switch {
	case c.cancelled.Load():
		c.forget(mcp.ErrCancelled)
		return
	case cause == errClientEnded: // the server has been told
		c.forget(errClientEnded)
		return
	case cause == upstream.ErrTooLong:
		c.s.link.Drop("time limit")
		c.s.opts.Logger.Warn("call ended: it took too long", "method", c.Method, "limit", c.s.opts.Settings.Timeouts.Max)
	}
	c.lost(c.s.link.Abandon(ctx, &c.Call, err))
}

// forget ends a call that the server needs no cancellation of, or has got it.
func (c *call) forget(err error) {
	c.s.link.Calls.Remove(&c.Call)
	c.Cancel(nil)
	c.lost(err)
}

// Answered implements [upstream.Owner]: it forwards the response.
func (c *call) Answered(_ *upstream.Call, r upstream.Response) {
	if c.s.calls.remove(c) {
		c.s.opts.Ended(&c.Call.Call, &r, nil)
		failed := c.failed(r) // before Answered passes the text on
		c.out.Answer(forClient(r, c.id), failed)
	}
}

// failed returns the error of the response or of its tool; nil if there is none.
func (c *call) failed(r upstream.Response) error {
	switch {
	case r.Err != nil:
		return r.Err
	case mcp.ToolFailed(c.Method, r.Result, r.Outline):
		return mcp.ErrToolFailed
	}
	return nil
}

// Deliver implements [upstream.Owner]: nothing is queued.
func (c *call) Deliver() {}

// lost answers the call with the reason why there is no response.
func (c *call) lost(err error) {
	if !c.s.calls.remove(c) {
		return
	}
	o, f := c.s.opts, upstream.AsFailure(err)
	o.Ended(&c.Call.Call, nil, err)
	switch {
	case err == mcp.ErrCancelled:
	case f != nil && f.Lost || errors.Is(err, mcp.ErrShutdown) || err == errClientEnded:
		err = mcp.SessionEnded(transport.Reason{Err: err})
	case errors.Is(err, upstream.ErrTooLong):
		err = wire.Errorf(spec.CodeInternal, "server %q did not answer %s within %v; raise timeouts.max if that is normal for it", o.Name, c.Method, o.Settings.Timeouts.Max)
	default:
		err = o.Explain(c.Method, err)
	}
	c.out.Lost(err)
}
