package front

import (
	"context"
	"errors"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// errCancelled is the cause with which a request ends that its client took back.
var errCancelled = errors.New("the client cancelled the request")

// A Pipe serves one client over a connection that all its requests share: stdio, or
// a WebSocket. What belongs to which request is told by ids, so an id can be in
// flight once. Its methods are safe for concurrent use.
//
// Spec: 2026-07-28, basic/transports/stdio.
type Pipe struct {
	// Set by OpenPipe, read-only after.
	f     *Front
	write func(msg []byte) error
	share mcp.Share
	idle  chan struct{} // closed when no call is left, nor will be

	// mu guards the fields below, and those of calls that say so. It is held for
	// map work only.
	mu      sync.Mutex
	calls   map[wire.ID]*pipeCall // those that are over, too, until they have ended
	running int                   // goroutines of calls
	closed  bool                  // no more calls are taken
}

// OpenPipe returns a Pipe that serves the principal of share. send sends one message, and keeps
// nothing of it; it is called for many requests at once, and must return in bounded
// time. After an error of send nobody can be answered: the caller closes the Pipe.
func (f *Front) OpenPipe(send func(msg []byte) error, share mcp.Share) *Pipe {
	return &Pipe{f: f, write: send, share: share, idle: make(chan struct{}), calls: make(map[wire.ID]*pipeCall)}
}

// Serve takes one message whose envelope is modern, or which is not told to be of
// either era. It does not wait for a request to be served; but one that is refused at
// once, for too many are in flight or have its id, waits for its answer to be sent,
// so that who asks too much is read from no faster than it reads.
func (p *Pipe) Serve(m *wire.Message) {
	switch m.Kind() {
	case wire.Request:
		p.call(m)
	case wire.Notification:
		if m.Method != spec.NotifyCancelled || !p.Cancel(m) {
			p.f.opts.Metrics.Dropped("client notification")
		}
	case wire.Response:
		p.f.opts.Metrics.Dropped("client response") // nothing was asked
	}
}

// Cancel ends the request that a notifications/cancelled names, unanswered, and
// reports whether there is one: ids are compared as they were written.
//
// Spec: 2026-07-28, basic/patterns/cancellation.
func (p *Pipe) Cancel(m *wire.Message) bool {
	id, err := wire.ParseID(wire.Get(m.Params, "requestId"))
	if err != nil {
		return false
	}
	p.mu.Lock()
	c := p.calls[id]
	if c == nil || c.over {
		p.mu.Unlock()
		return false
	}
	c.over = true
	p.mu.Unlock()
	c.cancel(errCancelled)
	return true
}

// Shutdown refuses further requests, ends listen streams with their result, and
// waits until the requests in flight are answered, or ctx ends.
//
// Spec: 2026-07-28, basic/patterns/subscriptions, Graceful Closure.
func (p *Pipe) Shutdown(ctx context.Context) error {
	_, streams := p.end()
	for _, mail := range streams {
		mail.End(mcp.ErrShutdown)
	}
	select {
	case <-p.idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close cancels what is in flight and waits for its end. Calls that wait for their
// client's answers go on waiting: the answers may come over another connection.
func (p *Pipe) Close() {
	calls, _ := p.end()
	for _, c := range calls {
		c.cancel(mcp.ErrShutdown)
	}
	<-p.idle
}

// end takes no more calls, and returns those that are yet to end, and what ends the
// listen streams among them.
func (p *Pipe) end() (calls []*pipeCall, streams []*fanout.Mailbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && p.running == 0 {
		close(p.idle)
	}
	p.closed = true
	for _, c := range p.calls {
		calls = append(calls, c)
		if c.mail != nil {
			streams = append(streams, c.mail)
		}
	}
	return calls, streams
}

func (p *Pipe) call(m *wire.Message) {
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &pipeCall{reply: reply{f: p.f, id: m.ID}, pipe: p, cancel: cancel, done: make(chan struct{})}
	c.out = c
	former, err := p.admit(c, m)
	if err != nil {
		cancel(err)
		// Who can't be answered is found out by whoever reads from it.
		_ = p.write(wire.AppendError(nil, m.ID, mcp.WireError(err)))
		return
	}
	go c.run(ctx, m, former) // ends with its handler; Close cancels it, and waits
}

// admit takes memory for a request and counts it in, or refuses it.
func (p *Pipe) admit(c *pipeCall, m *wire.Message) (former <-chan struct{}, err error) {
	if c.room, err = mcp.Take(p.f.opts.Memory, p.share, len(m.Text)); err != nil {
		return nil, err
	}
	if former, err = p.enter(c); err != nil {
		c.room.Release()
	}
	return former, err
}

// enter counts a call in, or refuses it. former is closed when the call that had the
// same id before has ended; it is nil if there is none.
func (p *Pipe) enter(c *pipeCall) (former <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	same := p.calls[c.id]
	switch {
	case p.closed:
		return nil, mcp.Refuse(spec.CodeInternal, "%v", mcp.ErrShutdown)
	case same != nil && !same.over:
		return nil, mcp.Refuse(spec.CodeInvalidRequest, "a request with id %s is in flight on this connection; give each its own", c.id)
	case p.running >= p.f.opts.MaxInFlight:
		p.f.opts.Metrics.Limit("in_flight")
		p.f.opts.Logger.Warn("request refused: too many are in flight on its connection", "upstream", p.f.opts.Name, "limit", p.f.opts.MaxInFlight)
		return nil, mcp.RefuseForNow("%d requests are in flight on this connection, the limit; wait for some to end", p.running)
	case same != nil:
		former = same.done
	}
	p.calls[c.id] = c
	p.running++
	return former, nil
}

// leave counts a call out.
func (p *Pipe) leave(c *pipeCall) {
	c.room.Release()
	p.mu.Lock()
	defer p.mu.Unlock()
	c.over = true
	if p.calls[c.id] == c {
		delete(p.calls, c.id)
	}
	close(c.done)
	if p.running--; p.running == 0 && p.closed {
		close(p.idle)
	}
}
