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
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
)

const (
	// takeTimeout is how long a caller waits for the answer to the POST of a call over
	// HTTP+SSE, or of a notification or response over HTTP, so that what comes next is sent
	// after it: some servers answer it only when they have run what was posted.
	takeTimeout = 200 * time.Millisecond
	// restTimeout bounds the wait for the end of a stream after the response, where
	// nobody waits for its connection.
	restTimeout = time.Second
)

// errClientEnded is why calls end with the session of their client.
var errClientEnded = errors.New("the session has ended")

// A call is a request of the client that was passed on. Whoever reads what the server
// sends hands it on: so the order is kept.
type call struct {
	link.Call
	s     *Session
	id    wire.ID // the client's
	token wire.ID // of progress; zero for none
	out   mcp.RelayedCall
	in    mcp.Intake // of the response
	begun time.Time

	cancelled atomic.Bool // by the client; the server was told, or is about to be
}

// calls are those in flight.
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

// remove reports whether c was still in flight, as it is for one caller alone.
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

// find returns the call with an id of the client, nil if there is none.
func (t *calls) find(id wire.ID) *call {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// ofToken returns the call with a progress token, nil if there is none.
func (t *calls) ofToken(token wire.ID) *call {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byToken[token]
}

// Call implements [mcp.Relay].
func (s *Session) Call(m *wire.Message, o mcp.RelayedCall) {
	c := s.newCall(m, o)
	// It ends with c.Cancel, which run calls.
	ctx, stop := context.WithTimeoutCause(context.Background(), s.opts.Timeouts.Max, upstream.ErrTooLong)
	ctx = c.Begin(ctx)
	err := s.link.Calls.Add(&c.Call)
	s.calls.add(c) // which has an id: Close may cancel it
	if err != nil {
		c.Cancel(nil)
		stop()
		c.lost(err)
		return
	}
	if r, ok := c.Settled(); ok { // by a server that guesses ids, before it was handed on
		c.Answered(nil, r)
	}
	s.opts.Observe(&c.Call.Call, o.Trace(), spec.Legacy, "")
	frame := withID(traced(m, c.Exchange), wire.NumberID(c.ID))
	c.Exchange.Sent(frame)
	if s.link.Ordered() { // in the order of the calls
		err = s.send(ctx, frame)
	}
	if err != nil || !s.link.Start(func() { c.run(ctx, frame); stop() }) {
		s.link.Calls.Remove(&c.Call)
		c.Cancel(nil)
		stop()
		c.lost(&upstream.Failure{Cause: s.link.Err(), Fate: upstream.NotSent, Lost: true})
		return
	}
	if s.link.IsSSE() {
		c.awaitTaken(ctx)
	}
}

func (s *Session) newCall(m *wire.Message, o mcp.RelayedCall) *call {
	c := &call{s: s, id: m.ID, out: o, begun: time.Now()}
	c.token, _ = wire.ParseID(wire.Get(wire.Get(m.Params, "_meta"), spec.MetaProgressToken)) // zero if it is none
	c.in.Use(s.memory, s.share)
	if id := o.Identity(); id != nil {
		c.Behalf = upstream.Behalf{Principal: id.Principal, Identity: id}
	}
	c.Method, c.Owner, c.Passes, c.In, c.Patience = m.Method, c, true, &c.in, restTimeout
	c.Taken = make(chan struct{})
	return c
}

// awaitTaken waits until the server has begun to answer the POST of the call, or has
// answered the call, but not for long.
func (c *call) awaitTaken(ctx context.Context) {
	late := time.NewTimer(takeTimeout - time.Since(c.begun))
	defer late.Stop()
	select {
	case <-c.Taken:
	case <-ctx.Done():
	case <-late.C:
	}
}

// run waits for the end of a call.
func (c *call) run(ctx context.Context, frame []byte) {
	err := c.do(ctx, frame)
	if r, ok := c.Settled(); ok { // and was handed on
		r = c.s.link.Finish(&c.Call, r)
		r.Free() // which may read the rest of a stream
		return
	}
	defer c.in.Close()
	cause := context.Cause(ctx)
	switch {
	case c.cancelled.Load():
		c.forget(mcp.ErrCancelled)
		return
	case cause == errClientEnded: // the server was told
		c.forget(errClientEnded)
		return
	case cause == upstream.ErrTooLong:
		c.s.link.Drop("time limit")
		c.s.opts.Logger.Warn("call ended: it took too long", "method", c.Method, "limit", c.s.opts.Timeouts.Max)
	}
	c.lost(c.s.link.Abandon(ctx, &c.Call, err))
}

// do sends the call, unless it was sent, and returns when it has ended.
func (c *call) do(ctx context.Context, frame []byte) error {
	if c.s.link.Ordered() { // it was sent
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return c.s.link.Do(ctx, &c.Call, frame)
}

// forget ends a call of which the server was told, or need not be.
func (c *call) forget(err error) {
	c.s.link.Calls.Remove(&c.Call)
	c.Cancel(nil)
	c.lost(err)
}

// Answered implements [upstream.Owner]: it hands the response on.
func (c *call) Answered(_ *upstream.Call, r upstream.Response) {
	if c.s.calls.remove(c) {
		c.Ended(&r, nil)
		failed := c.failed(r) // before the text is its owner's
		c.out.Answer(forClient(r, c.id), failed)
	}
}

// failed is the error that the response is, or that its tool failed; nil if neither.
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

// lost says why there is no response.
func (c *call) lost(err error) {
	if !c.s.calls.remove(c) {
		return
	}
	c.Ended(nil, err)
	o, f := c.s.opts, upstream.AsFailure(err)
	switch {
	case err == mcp.ErrCancelled:
	case f != nil && f.Lost || errors.Is(err, mcp.ErrShutdown) || err == errClientEnded:
		err = mcp.SessionEnded(transport.Reason{Err: err})
	case errors.Is(err, upstream.ErrTooLong):
		err = wire.Errorf(spec.CodeInternal, "server %q did not answer %s within %v; raise timeouts.max if that is normal for it", o.Name, c.Method, o.Timeouts.Max)
	default:
		err = o.Explain(c.Method, err)
	}
	c.out.Lost(err)
}
