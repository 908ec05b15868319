package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A parkedCall is a request that may park: it outlives the reply that it began with. While
// it has a reply, progress is sent there, and input requests end it. Between replies the
// call is parked: its handler waits in RequestInput until a retry brings the next reply.
//
// It is the mcp.Caller of its request.
type parkedCall struct {
	// Set by start, read-only after.
	calls  *parkedCalls
	id     uint64
	req    *mcp.Request
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the handler has returned

	inputsDue wake.Signal // input requests wait to be sent to the client

	outcome handlerResult // written before done is closed, read-only after; released by finish

	// it has a place among the parked calls
	reserved bool            // it has a place to park
	memory   mcp.Reservation // of the request

	// mu guards the fields below. parkedCalls.mu may be taken under it.
	mu      sync.Mutex
	reply   *reply          // nil while parked
	backlog backlog         // notifications that arrived while it was parked
	token   json.RawMessage // the progress token of the last retry
	pending []*pendingInput
	keys    int         // the number of keys that were used
	round   uint32      // the last one that was sent to the client
	expiry  *time.Timer // nil unless parked
	ended   error       // why no more input requests are accepted; nil until then
}

// A pendingInput is an input request that waits for its response.
type pendingInput struct {
	key      string
	request  mcp.InputRequest
	since    time.Time
	response chan mcp.InputResponse // capacity 1
}

// expiryGrace is how long an expired call has to end by itself.
const expiryGrace = time.Second

// errExpired is why a call ends whose client sent no retry in time.
var errExpired = errors.New("the client did not answer in time")

// Notify sends a notification on the current reply, progress with the token of the last
// retry. Between replies the notification waits for the next one.
func (c *parkedCall) Notify(ctx context.Context, n mcp.Notification) error {
	c.mu.Lock()
	p, token := c.reply, c.token
	isHeld := c.ended == nil && c.backlog.add(n)
	short := c.backlog.notes.Short()
	c.mu.Unlock()
	if short {
		_ = c.backlog.notes.Memory.Refuse() // counts and logs it
	}
	if isHeld {
		return nil
	}
	return c.notify(ctx, p, token, n)
}

// notify sends a notification on a reply, which may be nil.
func (c *parkedCall) notify(ctx context.Context, p *reply, token json.RawMessage, n mcp.Notification) error {
	isProgress := n.Method == spec.NotifyProgress
	if p == nil || isProgress && token == nil {
		c.calls.front.drop("call is parked")
		if p != nil && !n.More {
			return p.writer.flush() // of those that were to be sent with this one
		}
		return nil
	}
	if isProgress && !bytes.Equal(token, c.req.ProgressToken) {
		n.Params = wire.AppendEdited(nil, n.Params, wire.Edit{Name: spec.MetaProgressToken, Value: token})
	}
	return p.Notify(ctx, n)
}

// deliver sends the backlog on a reply. Notifications that arrive in the meantime are sent
// after it.
func (c *parkedCall) deliver(ctx context.Context, p *reply) {
	for {
		c.mu.Lock()
		token := c.token
		notes, lost := c.backlog.take()
		c.mu.Unlock()
		c.reportLost(lost)
		if len(notes) == 0 {
			return
		}
		for i, n := range notes {
			n.More = i < len(notes)-1
			_ = c.notify(ctx, p, token, n) // if the client has left, serveReply notices
		}
	}
}

// reportLost counts and logs notifications that were lost because the call was parked.
func (c *parkedCall) reportLost(n int) {
	if n == 0 {
		return
	}
	for range n {
		c.calls.front.drop("call is parked")
	}
	c.calls.front.opts.Logger.Warn("messages of a parked call were lost", "upstream", c.calls.front.opts.Name,
		"method", c.req.Method, "messages", n)
}

// RequestInput sends input requests to the client with the next input_required result, and
// waits for the responses. When ctx ends, it withdraws those that are pending.
func (c *parkedCall) RequestInput(ctx context.Context, qs []mcp.InputRequest) ([]mcp.InputResponse, error) {
	waiting, err := c.addInputs(qs)
	if err != nil {
		return nil, err
	}
	defer c.withdraw(waiting)
	mcp.NoteInputs(c.req.Trace, trace.InputRequired, qs)
	answers := make([]mcp.InputResponse, len(waiting))
	for i, q := range waiting {
		select {
		case answers[i] = <-q.response:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	mcp.NoteInputs(c.req.Trace, trace.InputAnswered, qs)
	return answers, nil
}

func (c *parkedCall) addInputs(qs []mcp.InputRequest) ([]*pendingInput, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return nil, c.ended
	}
	if err := c.calls.reserve(c); err != nil {
		return nil, err
	}
	waiting := make([]*pendingInput, len(qs))
	for i, q := range qs {
		c.keys++
		waiting[i] = &pendingInput{key: fmt.Sprintf("q%d", c.keys), request: q, since: time.Now(), response: make(chan mcp.InputResponse, 1)}
	}
	c.pending = append(c.pending, waiting...)
	c.inputsDue.Send()
	return waiting, nil
}

// withdraw removes input requests that are no longer needed.
func (c *parkedCall) withdraw(qs []*pendingInput) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = slices.DeleteFunc(c.pending, func(q *pendingInput) bool { return slices.Contains(qs, q) })
}

// run serves the request. It ends with the handler; parkedCalls waits for it.
func (c *parkedCall) run(ctx context.Context) {
	wake.GrowStack()
	defer close(c.done)
	c.outcome.res, c.outcome.err = c.calls.front.opts.Handler.Serve(ctx, c.req, c)
}

// serveReply sends the call's messages on p. It returns when the call has ended, when
// input requests have ended the reply, or when the client has left, or can't be sent them,
// which cancels the request.
func (c *parkedCall) serveReply(ctx context.Context, req *mcp.Request, p *reply) error {
	p.writer.keepAlive()
	defer p.writer.stopKeepAlive()
	c.deliver(ctx, p)
	for {
		select {
		case <-ctx.Done():
			c.abandon(context.Cause(ctx))
			return context.Cause(ctx)
		case <-c.done:
			p.writer.stopKeepAlive()
			return c.finish(req, p)
		case <-c.inputsDue:
		}
		if !c.gather(ctx) {
			continue // ctx or done has ended
		}
		if round := c.park(); round != nil {
			p.writer.stopKeepAlive()
			req.Trace.Event(trace.Parked, "")
			req.Trace.Note("input_required", nil)
			err := p.message(round)
			if err != nil && c.close(err) { // no retry can come: the client does not have the requestState
				c.abandon(err)
			}
			return err
		}
	}
}

// gather waits briefly, so that input requests that arrive together are sent in one
// result.
func (c *parkedCall) gather(ctx context.Context) bool {
	t := time.NewTimer(c.calls.front.opts.Settings.Gather)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-c.done:
	}
	return false
}

// park detaches the reply, and returns the result that ends it, or nil if the input
// requests were withdrawn in the meantime.
func (c *parkedCall) park() []byte {
	bound := binding(c.calls.front.opts.Name, c.req)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) == 0 || c.ended != nil {
		return nil
	}
	p := c.reply
	c.reply = nil
	c.backlog.open = true
	c.round++
	ttl := c.calls.front.opts.Settings.ParkedTTL
	c.expiry = time.AfterFunc(ttl, c.expire)
	c.calls.front.opts.Metrics.Held(c.calls.front.opts.Name, mcp.HeldCalls, 1)
	state := c.calls.front.opts.Sealer.Seal(requeststate.State{
		Call: c.id, Round: c.round, Binding: bound,
		Expires: time.Now().Add(ttl + time.Second), // whole seconds must not end before expiry
	})
	return appendInputRequired(nil, p.id, c.pending, state, c.calls.front.serverInfo(c.req))
}

// resume passes a round's input responses to the handler, and sets the next reply. It
// refuses a round that was resumed before.
func (c *parkedCall) resume(req *mcp.Request, round uint32, p *reply) error {
	responses := wire.Get(req.Params, "inputResponses")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reply != nil || c.round != round || c.ended != nil || !c.expiry.Stop() {
		return requeststate.ErrInvalid
	}
	c.expiry = nil
	c.calls.front.opts.Metrics.Held(c.calls.front.opts.Name, mcp.HeldCalls, -1)
	c.req.Trace.Continue(req.Trace)
	req.Trace.Event(trace.Resumed, "")
	c.reply, c.token = p, req.ProgressToken
	c.pending = slices.DeleteFunc(c.pending, func(q *pendingInput) bool {
		text := wire.Get(responses, q.key)
		if !mcp.WellFormed(q.request.Method, text) {
			return false // the next round requests it again
		}
		q.response <- mcp.InputResponse{Result: slices.Clone(text)}
		return true
	})
	if len(c.pending) > 0 {
		c.inputsDue.Send()
	}
	return nil
}

// finish writes the result of the handler, and removes the call.
func (c *parkedCall) finish(req *mcp.Request, p *reply) error {
	c.close(downstream.ErrEnded)
	c.calls.remove(c)
	if c.outcome.err != nil {
		return c.outcome.err
	}
	defer c.outcome.res.Release()
	err := p.result(req, c.outcome.res)
	if err != nil {
		c.outcome.res.Lost()
	}
	return err
}

// expire ends a parked call whose client sent no retry. It runs on the timer's goroutine,
// and ends with the handler, which it cancels.
func (c *parkedCall) expire() {
	c.calls.front.opts.Logger.Info("parked call expired: its client sent no retry", "upstream", c.calls.front.opts.Name, "method", c.req.Method)
	c.calls.front.drop("parked call expired")
	c.close(errExpired)
	// The server gets the responses to its input requests before the cancellation.
	t := time.NewTimer(expiryGrace)
	defer t.Stop()
	select {
	case <-c.done:
	case <-t.C:
	}
	c.abandon(errExpired)
}

// abandon cancels the request, waits for its handler, and removes the call.
func (c *parkedCall) abandon(cause error) {
	c.close(cause)
	c.cancel(cause)
	<-c.done
	c.outcome.res.Lost()
	c.outcome.res.Release()
	c.calls.remove(c)
}

// close refuses further input requests, and responds to the pending ones, so that the
// server does not wait for them. It reports whether the call was parked: then nobody removes it.
func (c *parkedCall) close(cause error) (parked bool) {
	c.mu.Lock()
	notes, lost := c.backlog.take()
	defer c.reportLost(len(notes) + lost)
	defer c.mu.Unlock()
	c.backlog.open = false
	if c.ended == nil {
		c.ended = cause
	}
	c.reply = nil
	if c.expiry != nil {
		parked = c.expiry.Stop() // else it removes the call
		c.expiry = nil
		c.calls.front.opts.Metrics.Held(c.calls.front.opts.Name, mcp.HeldCalls, -1)
	}
	for _, q := range c.pending {
		q.response <- mcp.Unanswered(q.request.Method, cause)
	}
	c.pending = nil
	return parked
}
