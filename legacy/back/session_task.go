package back

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
	"github.com/mcpbridge/mcpbridge/legacy/tasks"
)

// A sending sends a client's call in one of several ways, and waits for the response.
type sending func(ctx context.Context, req *mcp.Request, c *call) (upstream.Response, error)

// sendingOf returns how a request is sent: a call of a tool that runs as a task is held by a client
// that can, if there is a place, or else run, if it must be. keep keeps the session for a task; see
// [session.serve].
func (s *session) sendingOf(ctx context.Context, req *mcp.Request, keep func() func()) sending {
	set := &s.opts.Settings
	switch {
	case s.caps.TaskCalls && req.HoldsTasks && req.Method != spec.MethodToolsList:
		return s.attemptOwn
	case !s.caps.TaskCalls, req.Method != spec.MethodToolsCall, !set.RunsTasks():
		return s.attempt
	}
	support := s.supportOf(ctx, req)
	holds := support == tasks.Required || support == tasks.Optional && set.Tasks.Optional != settings.OptionalCall
	if holds && s.tellsTasks(s.opts) && mcp.DeclaresTasks(req) {
		if place := s.holding.Take(req); place != nil {
			return func(ctx context.Context, req *mcp.Request, c *call) (upstream.Response, error) {
				return s.holdTask(ctx, req, c, place, keep)
			}
		}
	}
	if support == tasks.Required {
		return s.runTask
	}
	return s.attempt
}

// supportOf returns whether the tool that a request calls runs as a task.
func (s *session) supportOf(ctx context.Context, req *mcp.Request) tasks.Support {
	name, ok := wire.GetString(req.Params, "name")
	if !ok {
		return tasks.Forbidden
	}
	if support, known := s.tools.Lookup(name); known {
		return support
	}
	bounded, cancel := context.WithTimeout(ctx, s.opts.Settings.Timeouts.Own())
	defer cancel()
	support, err := s.tools.Find(bounded, name, upstream.Pages(bounded, spec.MethodToolsList, s.Request))
	if err != nil {
		s.log.Warn("listing tools, to find out which must be run as tasks", "error", transport.Cause(err))
	}
	return support
}

// A taskHost is who waits for a task of the session: a call that is run, or a client that holds it.
type taskHost struct {
	call   *call
	held   *tasks.Held
	aside  mcp.Caller // of a client of 2025-11-25 that holds the server's own task
	notice func()     // says that the state has changed; nil if nobody has to know
}

// attemptOwn is attempt for a request by which a client of 2025-11-25 makes a task of the server's own,
// or uses one. Until it is known to be over, the task's questions are for the client: on the stream of
// tasks/result, or aside.
//
// Spec: 2025-11-25, basic/utilities/tasks, Input Required Status.
func (s *session) attemptOwn(ctx context.Context, req *mcp.Request, c *call) (upstream.Response, error) {
	c.ownTask = wire.Get(req.Params, "task")
	id, _ := wire.GetString(req.Params, "taskId")
	before := s.tasks.Find(id)
	if req.Method == spec.MethodTaskResult {
		c.mayBeAsked = true
		host := &taskHost{call: c, aside: req.Aside}
		s.tasks.Add(id, host)
		defer s.tasks.Remove(id, host)
	}
	if c.ownTask != nil {
		defer s.inputs.creates()()
	}
	a, err := s.attempt(ctx, req, c)
	switch made, ok := tasks.IDOf(a.Result); {
	case ok && c.ownTask != nil:
		s.tasks.Add(made, &taskHost{aside: req.Aside})
		s.lastFor(tasks.LifeOf(wire.Get(a.Result, "task"), s.opts.Settings.Tasks.Life()))
	case before == nil, before.aside == nil:
	case err != nil && req.Method == spec.MethodTaskResult:
		s.tasks.Add(id, before) // the client may ask again
	case req.Method == spec.MethodTaskResult, tasks.IsOver(a.Result):
		s.tasks.Remove(id, before)
	}
	return a, err
}

// lastFor has the session last so long unused, at least.
func (s *session) lastFor(d time.Duration) {
	for had := s.ownTasks.Load(); int64(d) > had && !s.ownTasks.CompareAndSwap(had, int64(d)); {
		had = s.ownTasks.Load()
	}
}

// runTask runs a call as a task, and returns its result like that of any other call.
//
// Spec: 2025-11-25, basic/utilities/tasks.
func (s *session) runTask(ctx context.Context, req *mcp.Request, c *call) (upstream.Response, error) {
	return s.asTask(ctx, req, c, s.opts.Settings.Timeouts.Max, func(ctx context.Context, created json.RawMessage, known func()) (json.RawMessage, error) {
		r := tasks.NewRun(s.holding.Tasks, s.opts.Name, s.log, taskCall{s, c}, created)
		host := &taskHost{call: c, notice: r.Notice}
		s.tasks.Add(r.ID(), host)
		defer s.tasks.Remove(r.ID(), host)
		c.namesInputs.Store(true)
		known()
		c.leaveLane()
		result, err := r.Await(ctx)
		if f := upstream.AsFailure(err); f != nil {
			err = &upstream.Failure{Cause: f.Cause, Fate: upstream.MayHaveRun, Lost: f.Lost}
		}
		if err != nil {
			s.cancelTask(ctx, r.CancelParams())
		}
		return result, err
	})
}

// A waiting is what becomes of a task that the server has made of a call. It calls known once the
// session can find the task.
type waiting func(ctx context.Context, created json.RawMessage, known func()) (json.RawMessage, error)

// asTask has the server make a task of a call, which then waits for. A result at once is the call's.
func (s *session) asTask(ctx context.Context, req *mcp.Request, c *call, ttl time.Duration, then waiting) (upstream.Response, error) {
	c.hasParts = true
	ctx, err := s.begin(ctx, c)
	if err != nil {
		return upstream.Response{}, err
	}
	defer c.Cancel(nil)
	known := s.inputs.creates()
	result, err := s.makeTask(ctx, req, c, ttl)
	if _, made := tasks.IDOf(result); err == nil && made {
		result, err = then(ctx, result, known)
	}
	known()
	if err != nil && link.MayBeRunning(ctx, err) {
		s.inputs.beginCancel(c)
	}
	if f := upstream.AsFailure(err); f != nil && !f.Lost && f.Cause == context.Cause(ctx) {
		err = f.Cause // it was not sent because it had ended: the server is there
	}
	c.Settle(upstream.Response{})
	c.end()
	s.Calls.Remove(&c.Call)
	s.inputs.changed.Fire()
	var we *wire.Error
	if errors.As(err, &we) {
		return upstream.Response{Err: we}, nil
	}
	return upstream.Response{Result: result}, err
}

// makeTask sends the call, and returns the response: a task, or the result. If the caller leaves
// before, a task that is made later is cancelled. The error is the server's as a *wire.Error, a
// *upstream.Failure, or ctx's cause.
func (s *session) makeTask(ctx context.Context, req *mcp.Request, c *call, ttl time.Duration) (json.RawMessage, error) {
	if err := s.prepare(ctx, c); err != nil {
		return nil, err
	}
	c.sent.Store(true)
	create := c.part(req.Method)
	params := tasks.Params(link.Params(nil, req.Params, c.upstreamToken(), c.Exchange), ttl)
	result, err := s.RoundTripLate(ctx, create, params, s.opts.Settings.Timeouts.Own(), func(result json.RawMessage) {
		if id, made := tasks.IDOf(result); made {
			s.cancelTask(ctx, tasks.IDParams(id))
		}
	})
	c.Cancelled = create.Cancelled
	return result, err
}

// cancelTask cancels a task upstream, unless params is nil.
func (s *session) cancelTask(ctx context.Context, params []byte) {
	if params != nil && s.cancelsTasks() {
		s.RequestLater(ctx, tasks.MethodCancel, params)
	}
}

// A taskCall is a client's call that runs as a task.
type taskCall struct {
	s *session
	c *call
}

// Request implements [tasks.Call].
func (t taskCall) Request(ctx context.Context, method string, params []byte) (json.RawMessage, error) {
	return t.s.RoundTrip(ctx, t.c.part(method), params)
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
