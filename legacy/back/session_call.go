package back

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// serve runs one request of a client. leaveLane, which may be nil, lets the next
// call run. The error is the server's own as a *wire.Error, a *failure, why ctx or
// the request's time ended, or a *visitDemand.
func (s *session) serve(ctx context.Context, req *mcp.Request, x mcp.Caller, leaveLane func()) (*mcp.Result, error) {
	c := newCall(req, x, leaveLane)
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
	err := s.roots.refresh(ctx, c)
	if err == nil && s.caps.Logging {
		err = s.level.raise(ctx, c)
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

// requestFor runs a request of the gateway's own for a part of a client's call: what
// comes on its stream is the call's. The result is the caller's.
func (s *session) requestFor(ctx context.Context, host *call, method string, params []byte) (json.RawMessage, error) {
	c := &wireCall{method: method, owner: host}
	c.in.Share(&host.in)
	return s.roundTrip(ctx, c, params)
}

// begin registers a client's call. The context it returns ends with ctx, with the
// session, and when the call's time is up.
func (s *session) begin(ctx context.Context, c *call) (context.Context, error) {
	if s.link.wakes() && !c.hosts {
		c.wake = make(chan struct{}, 1)
	}
	c.ctx = ctx
	ctx, c.cancel = context.WithCancelCause(ctx)
	c.clock = mcp.StartClock(s.opts.Timeouts.Request, s.opts.Timeouts.Max, func() { c.cancel(errTooLong) })
	err := s.enter(&c.wireCall)
	if err != nil {
		c.clock.Stop()
	}
	return ctx, err
}

// exchange sends a client's call and waits for its answer, and for what its caller is
// asked. Whoever gets an answer frees it.
func (s *session) exchange(ctx context.Context, c *call, frame []byte) (answer, error) {
	err := s.link.exchange(ctx, &c.wireCall, frame)
	a, ok := c.end()
	if !ok {
		return a, s.abandon(ctx, c, err)
	}
	defer s.inputs.changed.fire()
	return s.finish(&c.wireCall, a), nil
}

// abandon gives up on a client's call, as that of a wireSession does.
func (s *session) abandon(ctx context.Context, c *call, err error) error {
	if mayBeRunning(ctx, err) {
		s.inputs.noteCancelled(c) // before others see that it is gone
	}
	defer s.inputs.changed.fire()
	return s.wireSession.abandon(ctx, &c.wireCall, err)
}
