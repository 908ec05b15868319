package back

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxTaskTools bounds the tools that are known to want a task, over all profiles of one server.
const maxTaskTools = 10_000

// taskTools are the tools that a server has refused to run without a task. Safe for concurrent use.
type taskTools struct {
	tools *lru.Cache[taskTool, struct{}]
}

type taskTool struct{ scope, name string }

func newTaskTools() (taskTools, error) {
	tools, err := lru.New[taskTool, struct{}](maxTaskTools)
	return taskTools{tools}, err
}

// forget removes the tools of a profile, whose list has changed, or of all.
func (t taskTools) forget(scope string, all bool) {
	for _, tool := range t.tools.Keys() {
		if all || tool.scope == scope {
			t.tools.Remove(tool)
		}
	}
}

// mayRun reports whether the request is a legacy client's call that can be run as a task. Another
// replica runs its clients' calls itself.
func (s *servedRequest) mayRun() bool {
	return s.req.Era == spec.Legacy && s.req.Method == spec.MethodToolsCall && s.b.opts.Peer == nil && s.b.opts.Settings.RunsTasks()
}

func (s *servedRequest) taskTool() taskTool {
	name, _ := wire.GetString(s.req.Params, "name")
	return taskTool{s.req.Profile.Scope, name}
}

// declareIfKnown has a call of a tool that is known to want a task declare the extension.
func (s *servedRequest) declareIfKnown() {
	s.declares = s.b.taskTools.tools.Len() > 0 && s.mayRun() && s.b.taskTools.tools.Contains(s.taskTool())
}

// declareFor reports whether a server has refused the call since it does not declare the tasks
// extension. Then it does from now on, and so do later calls of the tool.
//
// Spec: tasks extension 2026-07-28, Capability Negotiation.
func (s *servedRequest) declareFor(e *wire.Error) bool {
	extensions := wire.Get(wire.Get(e.Data, "requiredCapabilities"), "extensions")
	if e.Code != spec.CodeMissingCapability || s.declares || !s.mayRun() || wire.Get(extensions, spec.ExtensionTasks) == nil {
		return false
	}
	s.declares = true
	s.b.taskTools.tools.Add(s.taskTool(), struct{}{})
	return true
}

// A taskRun is what requests about one task are sent with, and what a look at it has found.
type taskRun struct {
	s  *servedRequest
	id string

	status, message string
	interval        time.Duration // between looks, at most
}

// runTask looks at the task that a server has made for the call until it is over, and returns its
// outcome as that of the call. If the call ends before, the task is cancelled.
//
// Spec: tasks extension 2026-07-28, Task Lifecycle.
func (s *servedRequest) runTask(ctx context.Context, made []byte) (upstream.Response, error) {
	id, ok := wire.GetString(made, "taskId")
	if !ok {
		return upstream.Response{}, wire.Errorf(spec.CodeInternal, "server %q made a task of %s that has no id", s.b.opts.Name, s.req.Method)
	}
	h := s.newHeld(id)
	h.runs, h.pause = true, 2*upstream.MinTaskPause
	h.table = s.b.held.Run(h, upstream.TaskState{Status: upstream.TaskWorking, Pause: upstream.MinTaskPause})
	h.begun(made)
	var steps mcp.Steps
	before := h.last
	end, err := h.await(ctx, &waiter{s: h.run().s, caller: s.caller, clock: &s.clock}, false, func(state upstream.TaskState, asked bool) {
		if !asked {
			s.clock.Restart()
			s.tell(ctx, &steps, state.Text, !bytes.Equal(before, state.Text))
		}
		before = state.Text
	})
	if err != nil && !upstream.TaskOver(h.table.Last().Status) {
		h.run().cancel(ctx)
	}
	if err == nil {
		err = end.Err
	}
	if f := upstream.AsFailure(err); f != nil {
		err = &upstream.Failure{Cause: f.Cause, Fate: upstream.MayHaveRun, Lost: f.Lost}
	}
	return upstream.Response{Result: end.Result}, err
}

// read reads a task's state.
func (t *taskRun) read(task []byte) {
	t.status, _ = wire.GetString(task, "status")
	t.message, _ = wire.GetString(task, "statusMessage")
	t.interval = upstream.PauseOf(wire.Get(task, "pollIntervalMs"))
}

// outcome returns what a task that is over came to. The result aliases the task.
func (t *taskRun) outcome(task []byte) (upstream.Response, error) {
	name := t.s.b.opts.Name
	switch result, failure := wire.Get(task, "result"), wire.Get(task, "error"); {
	case t.status == "completed" && wire.IsObject(result):
		return upstream.Response{Result: json.RawMessage(result)}, nil
	case t.status == "failed" && wire.IsObject(failure):
		code, err := strconv.ParseInt(string(wire.Get(failure, "code")), 10, 64)
		if err != nil {
			code = spec.CodeInternal
		}
		message, _ := wire.GetString(failure, "message")
		e := &wire.Error{Code: code, Message: message, Data: upstream.Keep(wire.Get(failure, "data"))}
		return upstream.Response{}, t.s.b.upstreamError(t.s.req, e)
	case t.status == "cancelled":
		return upstream.Response{}, wire.Errorf(spec.CodeInternal, "server %q cancelled the task that ran the tool: %s", name, reason(t.message))
	}
	return upstream.Response{}, wire.Errorf(spec.CodeInternal, "server %q has a task that is %s, and does not say what it came to: %s", name, t.status, reason(t.message))
}

func reason(message string) string {
	if message == "" {
		return "it gave no reason"
	}
	return mcp.Shorten(message)
}

// tell sends progress of a task to a client that wants it.
func (s *servedRequest) tell(ctx context.Context, steps *mcp.Steps, task []byte, changed bool) {
	token := s.req.ProgressToken
	if token == nil {
		return
	}
	value, due := steps.Next(changed)
	if !due || !s.clock.Advance(value) {
		return
	}
	edits := []wire.Edit{{Name: spec.MetaProgressToken, Value: token}, {Name: "progress", Value: value}}
	if message, _ := wire.GetString(task, "statusMessage"); message != "" {
		edits = append(edits, wire.Edit{Name: "message", Value: wire.Quote(message)})
	}
	_ = s.caller.Notify(ctx, mcp.Notification{Method: spec.NotifyProgress, Params: wire.AppendEdited(nil, nil, edits...)}) // if the client has left, ctx ends
}

// cancel cancels the task upstream, though the call has ended.
//
// Spec: tasks extension 2026-07-28, tasks/cancel.
func (t *taskRun) cancel(ctx context.Context) {
	_, done, err := t.send(context.WithoutCancel(ctx), spec.MethodTaskCancel)
	done()
	if err != nil {
		t.s.b.log.Debug("cancelling a task", "error", transport.Cause(err))
	}
}

// send sends a request about the task on behalf of the client, again if that can help. It waits as
// long as for the gateway's own requests: the call's clock may stand still, and an answer of the
// client must not wait for a look. done frees the response, and is not nil.
func (t *taskRun) send(ctx context.Context, method string, more ...wire.Edit) (a upstream.Response, done func(), err error) {
	req := *t.s.req
	req.Method, req.Params = method, wire.AppendEdited(nil, nil, wire.Edit{Name: "taskId", Value: wire.Quote(t.id)})
	req.Extra, req.Plain, req.ParamHeaders, req.ProgressToken = nil, wire.Plain{}, nil, nil
	s := &servedRequest{b: t.s.b, req: &req, caller: t.s.caller, declares: true}
	s.in.Use(req.Memory, req.Share)
	ctx, cancel := context.WithTimeoutCause(ctx, t.s.b.opts.Settings.Timeouts.Own(), upstream.ErrTooLong)
	a, err = s.send(ctx, more)
	return a, func() { a.Free(); s.in.Close(); cancel() }, err
}
