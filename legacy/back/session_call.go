package back

import (
	"context"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
)

// serve runs one request of a client. keep keeps the session for a task that its client holds, and
// returns what releases it. It calls leaveLane, which may be called again, when the
// call is answered, or was cancelled and the server requests no input for it any more; or
// earlier, while the call is parked. The error is the server's as a *wire.Error, a
// *upstream.Failure, the cause of ctx or of the request's time-out, or an
// *elicitationRequired.
func (s *session) serve(ctx context.Context, req *mcp.Request, caller mcp.Caller, leaveLane func(), keep func() func()) (*mcp.Result, error) {
	if spec.LeavesState(req.Method) {
		s.mayHaveState.Store(true)
		s.held.Note(req)
		s.user.note(req.ClientInfo)
	}
	whileParked := leaveLane
	if s.opts.Settings.Isolation == settings.IsolateNothing {
		whileParked = func() {}
	}
	c := newCall(req, caller, whileParked)
	defer s.leave(c, leaveLane)
	a, err := s.sendingOf(ctx, req, keep)(ctx, req, c)
	switch {
	case err != nil:
		return nil, err
	case c.held != nil:
		return s.heldResult(c.held), nil
	case a.Err == nil:
		return s.result(req, c, a)
	}
	failed := a.TakeError()
	if spec.ModernError(failed.Code) {
		s.opts.Doubt(fmt.Sprintf("it answered %s with %v", req.Method, mcp.Shorten(failed.Error())))
	}
	switch need := c.missing(); {
	case failed.Code == spec.CodeURLElicitation && c.mayBeAsked:
		return nil, &elicitationRequired{failed}
	case need != nil:
		return nil, mcp.LackedCapability(need, failed.Message)
	}
	return nil, link.ModernError(req, failed, s.caps.Declares(req.Method))
}

// attempt sends a client's request, and waits for the response.
func (s *session) attempt(ctx context.Context, req *mcp.Request, c *call) (upstream.Response, error) {
	ctx, err := s.begin(ctx, c)
	if err != nil {
		return upstream.Response{}, err
	}
	if err := s.prepare(ctx, c); err != nil {
		c.end()
		return upstream.Response{}, s.abandon(ctx, c, err)
	}
	s.opts.Observe(&c.Call.Call, req.Trace, spec.Legacy, s.revision)
	c.sent.Store(true) // from then on the server may ask, of which observers are told
	a, err := s.exchange(ctx, c, c.frame(req))
	s.opts.Ended(&c.Call.Call, &a, err)
	return a, err
}

// frame returns the request as it is sent to the server.
func (c *call) frame(req *mcp.Request) []byte {
	space := transport.GetBuffer(len(req.Params) + 64)
	defer transport.PutBuffer(space) // the frame is a copy
	params := link.Params(space, req.Params, c.upstreamToken(), c.Exchange)
	if c.ownTask != nil {
		params = wire.AppendEdited(nil, params, wire.Edit{Name: "task", Value: c.ownTask})
	}
	frame := make([]byte, 0, len(params)+len(req.Method)+len(req.Extra)+64)
	frame = wire.AppendRequest(frame, wire.NumberID(c.ID), req.Method, params, req.Extra)
	c.Exchange.Sent(frame)
	return frame
}

// prepare does what has to be done before a client's request is sent.
func (s *session) prepare(ctx context.Context, c *call) error {
	err := s.roots.refresh(ctx, c)
	if err == nil && s.caps.Logging {
		err = s.level.raise(ctx, c)
	}
	if err != nil {
		return &upstream.Failure{Cause: err, Fate: upstream.NotSent, Lost: !s.Alive()}
	}
	return nil
}

// result converts a response to the result for the client.
func (s *session) result(req *mcp.Request, c *call, a upstream.Response) (*mcp.Result, error) {
	if need := c.missing(); need != nil {
		if text, failed := mcp.FailedText(a.Result); failed {
			a.Free()
			return nil, mcp.LackedCapability(need, text)
		}
	}
	if req.Method == spec.MethodToolsCall && !req.HoldsTasks && a.Outline.Get(a.Result, "task") != nil && a.Outline.Get(a.Result, "content") == nil {
		a.Free()
		return nil, wire.Errorf(spec.CodeInternal, "server %q made a task of a call that asked for none; it may have taken effect", s.opts.Name)
	}
	if s.caps.TaskCalls && req.Method == spec.MethodToolsList {
		s.tools.Learn(a.Result)
	}
	res := mcp.NewResult(a.Result, a.Release)
	res.Outline = a.Outline
	res.Era, res.Extra, res.ServerInfo, res.Cache = spec.Legacy, a.Extra, s.serverInfo, s.opts.hint(req.Method)
	return res, nil
}

// part returns a request that is a part of a client's call.
func (c *call) part(method string) *link.Call {
	in := new(mcp.Intake)
	in.Share(&c.in)
	return &link.Call{Call: upstream.Call{Method: method, In: in, Owner: c, Behalf: c.Behalf}}
}

// begin registers a client's call. The returned context ends with ctx, with the session,
// and when the call's time is up.
func (s *session) begin(ctx context.Context, c *call) (context.Context, error) {
	if !s.Attributes() && !c.hasParts {
		c.Wake = wake.NewSignal()
	}
	c.ctx = ctx
	ctx = c.Begin(ctx)
	c.clock.Start(s.opts.Settings.Timeouts.Silence(c.Method), s.opts.Settings.Timeouts.Max, func() { c.Cancel(upstream.ErrTooLong) })
	err := s.Calls.Add(&c.Call)
	if err != nil {
		c.clock.Stop()
		c.Cancel(nil)
	}
	return ctx, err
}

// exchange sends a client's call, and waits for the response and for pending input
// requests. The caller frees the response.
func (s *session) exchange(ctx context.Context, c *call, frame []byte) (upstream.Response, error) {
	err := s.Do(ctx, &c.Call, frame)
	if !c.IsSettled() && link.MayBeRunning(ctx, err) {
		s.inputs.beginCancel(c) // before end, after which the call is no candidate any more
	}
	a, ok := c.end()
	if n := c.leftOut(); n > 0 {
		s.log.Warn("log messages for a client were left out: they came faster than it read them", "method", c.Method, "messages", n)
	}
	if !ok {
		return a, s.abandon(ctx, c, err)
	}
	defer s.inputs.changed.Fire()
	return s.Calls.Finish(&c.Call, a), nil
}

// leave frees the lane of a call that has ended: at once or, if it was cancelled, when the server has
// nothing more to say of it. Input requests of the next call could not be told from late ones of this
// one. A server that answers no ping for a while keeps the lane no longer: its input requests are refused.
func (s *session) leave(c *call, leaveLane func()) {
	if !c.orphaned.Load() {
		leaveLane()
		return
	}
	asks := !c.req.Profile.Single && mcp.CanBeAsked(c.capabilities())
	end := func() { s.inputs.endCancel(); leaveLane() }
	if !s.Start(func() { link.Outlast(s.Link, &c.Call, cancelGrace, asks, leaveLane); end() }) { // at the latest with the session
		end()
	}
}

// abandon ends a client's call without a response, and returns the reason.
func (s *session) abandon(ctx context.Context, c *call, err error) error {
	defer s.inputs.changed.Fire()
	return s.Abandon(ctx, &c.Call, err)
}
