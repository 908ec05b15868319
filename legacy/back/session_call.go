package back

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// serve runs one request of a client. leaveLane, which may be nil, lets the next
// call run. The error is the server's own as a *wire.Error, a *failure, why ctx or
// the request's time ended, or a *visitDemand.
func (s *session) serve(ctx context.Context, req *mcp.Request, x mcp.Caller, leaveLane func()) (*mcp.Result, error) {
	c := &call{
		method: req.Method, level: req.LogLevel, token: req.ProgressToken, x: x, req: req,
		capabilities: req.Profile.Capabilities, mayBeAsked: spec.MayAsk(req.Method), leaveLane: leaveLane,
		notes: mcp.Backlog{Room: mcp.NewRoom(req.Memory, req.Share)},
	}
	c.in.Use(req.Memory, req.Share)
	run := s.attempt
	if s.needsTask(ctx, req) {
		run = s.runTask
	}
	a, err := run(ctx, req, c)
	switch {
	case err != nil:
		return nil, err
	case a.err == nil:
		return s.result(req, c, a)
	}
	failed := a.takeError()
	if spec.ModernError(failed.Code) {
		s.opts.Doubt(fmt.Sprintf("it answered %s with %v", req.Method, shorten(failed.Error())))
	}
	switch need := c.lacks(); {
	case failed.Code == spec.CodeURLElicitation && c.mayBeAsked:
		return nil, &visitDemand{failed}
	case need != nil:
		return nil, lacking(need, failed.Message)
	}
	return nil, upstreamError(req, failed, s.caps.Declares(req.Method))
}

// attempt sends a client's request and waits for the answer.
func (s *session) attempt(ctx context.Context, req *mcp.Request, c *call) (answer, error) {
	ctx, err := s.begin(ctx, c)
	if err != nil {
		return answer{}, err
	}
	if err := s.prepare(ctx, c); err != nil {
		c.end()
		return answer{}, s.abandon(ctx, c, err)
	}
	return s.exchange(ctx, c, c.frame(req))
}

// frame returns the client's request as the server gets it.
func (c *call) frame(req *mcp.Request) []byte {
	var few [512]byte // most params are small
	params := upstreamParams(few[:0], req.Params, c.upstreamToken())
	frame := make([]byte, 0, len(params)+len(req.Method)+len(req.Extra)+64)
	return wire.AppendRequest(frame, wire.NumberID(c.id), req.Method, params, req.Extra)
}

// prepare does what must be done before the server hears of a client's request.
func (s *session) prepare(ctx context.Context, c *call) error {
	err := s.refreshRoots(ctx, c)
	if err == nil {
		err = s.raiseLevel(ctx, c)
	}
	if err != nil {
		return &failure{cause: err, fate: notSent}
	}
	c.leaves()
	return nil
}

// result makes the client's result of an answer.
func (s *session) result(req *mcp.Request, c *call, a answer) (*mcp.Result, error) {
	if need := c.lacks(); need != nil {
		if text, failed := failedText(a.result); failed {
			a.free()
			return nil, lacking(need, text)
		}
	}
	if s.caps.TaskCalls && req.Method == spec.MethodToolsList {
		s.tools.learn(a.result)
	}
	res := mcp.NewResult(a.result, a.release)
	res.Outline = a.outline
	res.Era, res.Extra, res.ServerInfo, res.Cache = spec.Legacy, a.extra, s.serverInfo, s.opts.Cache[req.Method]
	return res, nil
}

// request runs a request of the gateway's own. The result is the caller's.
func (s *session) request(ctx context.Context, method string, params []byte) (json.RawMessage, error) {
	return s.requestFor(ctx, nil, method, params)
}

// requestFor is request for a part of a client's call, which may be nil: what
// comes on its stream is the call's.
func (s *session) requestFor(ctx context.Context, owner *call, method string, params []byte) (json.RawMessage, error) {
	c := &call{method: method, owner: owner}
	if owner != nil {
		c.in.Share(&owner.in)
	}
	ctx, err := s.begin(ctx, c)
	if err != nil {
		return nil, err
	}
	a, err := s.exchange(ctx, c, wire.AppendRequest(nil, wire.NumberID(c.id), method, params, nil))
	if err != nil {
		return nil, err
	}
	if a.err != nil {
		return nil, a.takeError()
	}
	defer a.free()
	return bytes.Clone(a.result), nil
}

// notify sends a notification and waits until it has left.
func (s *session) notify(ctx context.Context, method string, params []byte) error {
	return s.link.send(ctx, wire.AppendNotification(nil, method, params, nil))
}

// begin registers c under an id of its own. The context it returns ends with
// ctx, with the session, and, for a client's request, when its time is up.
//
// Ids are small and count from 1: some servers ignore others without a word.
func (s *session) begin(ctx context.Context, c *call) (context.Context, error) {
	if s.link.wakes() && !c.hosts {
		c.wake = make(chan struct{}, 1)
	}
	c.ctx = ctx
	ctx, c.cancel = context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		c.cancel(nil)
		return ctx, &failure{cause: s.err, fate: notSent, lost: true}
	}
	if c.x != nil {
		c.clock = mcp.StartClock(s.opts.Timeouts.Request, s.opts.Timeouts.Max, func() { c.cancel(errTooLong) })
	}
	c.id = s.ids.Add(1)
	s.calls[c.id] = c
	return ctx, nil
}

// exchange sends the request c and waits for its answer. Whoever gets an answer
// frees it.
func (s *session) exchange(ctx context.Context, c *call, frame []byte) (answer, error) {
	err := s.link.exchange(ctx, c, frame)
	a, ok := c.end()
	if !ok {
		return a, s.abandon(ctx, c, err)
	}
	s.forget(c)
	release := a.release
	a.release = func() {
		if release != nil {
			release()
		}
		c.in.Close()
		c.cancel(nil) // not earlier: a stream may have to be read to its end
	}
	return a, nil
}

// abandon gives up on c, tells the server if the request may be running there,
// and returns why there is no answer.
//
// Spec: 2025-11-25, basic/utilities/cancellation.
func (s *session) abandon(ctx context.Context, c *call, err error) error {
	c.in.Close()
	cause := context.Cause(ctx)
	f := asFailure(err)
	mayRun := asFailure(cause) == nil && cause != nil && (f == nil || !f.lost && f.fate == mayHaveRun)
	if mayRun {
		s.haunt(c) // before others see that it is gone
	}
	s.forget(c)
	c.cancel(nil)
	if f := asFailure(cause); f != nil {
		return f // the session went away
	}
	if f != nil && f.lost || cause == nil {
		return err
	}
	if c.method != spec.MethodInitialize && mayRun {
		s.sendLater(ctx, wire.AppendNotification(nil, spec.NotifyCancelled, cancelledParams(c.id, cause), nil))
	}
	return cause
}

// haunt notes that a call was cancelled which may still be heard: the server may
// not know yet.
func (s *session) haunt(c *call) {
	if !c.mayBeAsked {
		return
	}
	c.stray()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.haunted = time.Now().Add(hauntTime)
}

func cancelledParams(id int64, cause error) []byte {
	reason := "the client cancelled the request"
	if cause == errTooLong || cause == context.DeadlineExceeded {
		reason = "time-out"
	}
	return wire.AppendEdited(nil, nil,
		wire.Edit{Name: "requestId", Value: wire.NumberID(id).Append(nil)},
		wire.Edit{Name: "reason", Value: wire.Quote(reason)})
}

// forget makes later answers to c late ones.
func (s *session) forget(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, c.id)
	s.shiftedLocked()
}

// call returns the request in flight with an id that the server wrote, or nil.
func (s *session) call(id wire.ID) *call {
	n, ok := id.Int()
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[n]
}
