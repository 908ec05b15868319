package back

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/tasks"
)

// needsTask reports whether a request calls a tool that must be run as a task.
func (s *session) needsTask(ctx context.Context, req *mcp.Request) bool {
	if !s.caps.TaskCalls || req.Method != spec.MethodToolsCall {
		return false
	}
	name, ok := wire.GetString(req.Params, "name")
	if !ok {
		return false
	}
	if required, known := s.tools.Lookup(name); known {
		return required
	}
	bounded, cancel := context.WithTimeout(ctx, s.opts.Settings.Timeouts.Own())
	defer cancel()
	required, err := s.tools.Find(bounded, name, upstream.Pages(bounded, spec.MethodToolsList, s.Request))
	if err != nil {
		s.log.Warn("listing tools, to find out which must be run as tasks", "error", transport.Cause(err))
	}
	return required
}

// runTask runs a call as a task, and returns its result like that of any other call.
//
// Spec: 2025-11-25, basic/utilities/tasks.
func (s *session) runTask(ctx context.Context, req *mcp.Request, c *call) (upstream.Response, error) {
	c.hasParts = true
	ctx, err := s.begin(ctx, c)
	if err != nil {
		return upstream.Response{}, err
	}
	defer c.Cancel(nil)
	result, err := s.awaitTask(ctx, req, c)
	if err != nil && ctx.Err() != nil {
		s.inputs.beginCancel(c)
		defer s.inputs.endCancel(c)
	}
	c.Settle(upstream.Response{})
	c.end()
	s.Calls.Remove(&c.Call)
	s.inputs.changed.fire()
	var we *wire.Error
	if errors.As(err, &we) {
		return upstream.Response{Err: we}, nil
	}
	return upstream.Response{Result: result}, err
}

// awaitTask creates the task, and waits for its result. The error is the server's as a
// *wire.Error, a *upstream.Failure, or ctx's cause.
func (s *session) awaitTask(ctx context.Context, req *mcp.Request, c *call) (json.RawMessage, error) {
	if err := s.prepare(ctx, c); err != nil {
		return nil, err
	}
	c.sent.Store(true)
	params := tasks.Params(upstreamParams(nil, req.Params, c.upstreamToken(), c.Exchange), s.opts.Settings.Timeouts.Max)
	create := c.part(req.Method)
	created, err := s.RoundTrip(ctx, create, params)
	c.Cancelled = create.Cancelled
	if err != nil {
		return nil, err
	}
	t := tasks.New(s.opts.Name, s.log, taskCall{s, c}, created)
	if t == nil {
		return created, nil // the server created no task and returned the result
	}
	s.tasks.Add(t, c)
	defer s.tasks.Remove(t)
	c.namesInputs.Store(true)
	c.freeLane()
	result, err := t.Await(ctx)
	if f := upstream.AsFailure(err); f != nil {
		err = &upstream.Failure{Cause: f.Cause, Fate: upstream.MayHaveRun, Lost: f.Lost}
	}
	if err != nil {
		s.cancelTask(ctx, t.CancelParams())
	}
	return result, err
}

// cancelTask cancels a task upstream, unless params is nil.
func (s *session) cancelTask(ctx context.Context, params []byte) {
	if params == nil || !mcp.Declares(wire.Get(s.caps.Raw, "tasks"), "cancel") {
		return
	}
	s.Later(ctx, func(ctx context.Context) {
		if _, err := s.Request(ctx, tasks.MethodCancel, params); err != nil {
			s.log.Debug("cancelling task", "error", transport.Cause(err))
		}
	})
}

// A taskCall is a client's call that runs as a task.
type taskCall struct {
	s *session
	c *call
}

// Request implements [tasks.Call].
func (t taskCall) Request(ctx context.Context, method string, params []byte) (json.RawMessage, error) {
	return t.s.requestFor(ctx, t.c, method, params)
}

// BeingAsked implements [tasks.Call].
func (t taskCall) BeingAsked() bool { return t.c.beingAsked() }

// Restart implements [tasks.Call].
func (t taskCall) Restart() { t.c.clock.Restart() }

// Progress implements [tasks.Call].
func (t taskCall) Progress(value []byte, message string) {
	c := t.c
	if c.token() == nil || !c.clock.Advance(value) {
		return
	}
	params := wire.AppendEdited(nil, nil,
		wire.Edit{Name: spec.MetaProgressToken, Value: c.token()},
		wire.Edit{Name: "progress", Value: value})
	if message != "" {
		params = wire.AppendEdited(nil, params, wire.Edit{Name: "message", Value: wire.Quote(message)})
	}
	if c.enqueue(spec.NotifyProgress, params) {
		c.drainSoon()
	}
}
