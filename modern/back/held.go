package back

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// heldTasks are the tasks of the server that the gateway looks at: those that run a call, those that
// clients of 2025-11-25 hold, and the results that are kept for them.
type heldTasks struct {
	upstream.Sealed
	b    *Back
	held bool // clients hold some
}

// newHeldTasks returns those of a Back. Another replica holds its clients' itself.
func newHeldTasks(b *Back) (*heldTasks, error) {
	tasks, err := b.opts.Tasks()
	set := &b.opts.Settings
	h := &heldTasks{b: b, held: set.Tasks.Mode == settings.TasksOn && set.HoldsTasks() && b.opts.Peer == nil}
	h.Sealed.Tasks = tasks
	h.Again = func(task *upstream.Task, id, tool string) (upstream.TaskSource, upstream.TaskState) {
		held := &heldTask{in: h, table: task, id: id, tool: tool, made: time.Now(), asked: make(map[string]*heldQuestion)}
		return held, held.begun(nil)
	}
	return h, err
}

// offers reports whether the client of a request may be told of tasks.
func (h *heldTasks) offers(req *mcp.Request) bool {
	return h.held && req.Era == spec.Legacy && req.Revision == spec.Rev20251125
}

// serves reports whether a request is about a task that its client may hold.
func (h *heldTasks) serves(req *mcp.Request) bool {
	return h.offers(req) && req.HoldsTasks && spec.OnHeldTask(req.Method)
}

// serve serves a request about a task.
//
// Spec: 2025-11-25, basic/utilities/tasks.
func (h *heldTasks) serve(ctx context.Context, req *mcp.Request, caller mcp.Caller) (*mcp.Result, error) {
	id, _ := wire.GetString(req.Params, "taskId")
	task, err := h.Find(req, id)
	if err != nil {
		return nil, err
	}
	held, _ := task.Source().(*heldTask) // all are
	asker := held.hear(req)
	var s upstream.TaskState
	switch req.Method {
	case spec.MethodTaskResult:
		if s, err = held.await(ctx, &waiter{s: asker, caller: caller}, true, tellChanges(ctx, caller)); err == nil {
			return held.outcome(&s)
		}
	case spec.MethodTaskCancel:
		s, err = held.Cancel(ctx)
	default:
		s, err = held.table.Get(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, h.b.clientError(req.Method, err)
	}
	res := mcp.NewResult(s.Text, nil)
	res.Era = spec.Legacy // it is in that form
	return res, nil
}

// tellChanges returns what tells a client of changes of a task for whose end it waits.
//
// Spec: 2025-11-25, basic/utilities/tasks, Task Status Notification.
func tellChanges(ctx context.Context, caller mcp.Caller) func(upstream.TaskState, bool) {
	var before []byte
	return func(s upstream.TaskState, _ bool) {
		if before != nil && !bytes.Equal(before, s.Text) {
			_ = caller.Notify(ctx, mcp.Notification{Method: spec.NotifyTaskStatus, Params: s.Text}) // if the client has left, ctx ends
		}
		before = s.Text
	}
}

// takePlace takes a place for the task that a client wants its call to be, if there is one. If not,
// the call is served as if its client could hold none.
func (s *servedRequest) takePlace() {
	h := s.b.held
	if !h.offers(s.req) || !s.req.HoldsTasks || s.req.Method != spec.MethodToolsCall || !wire.IsObject(wire.Get(s.req.Params, "task")) {
		return
	}
	if s.place = h.Take(s.req); s.place != nil {
		s.declares = true
	}
}

// dropPlace gives back the place of a task that was not made.
func (s *servedRequest) dropPlace() {
	if s.place != nil {
		s.place.Drop()
	}
}

// hold has the client hold the task that the server has made of its call, and returns the result that
// says so.
func (s *servedRequest) hold(made []byte) (upstream.Response, error) {
	id, ok := wire.GetString(made, "taskId")
	if !ok {
		return upstream.Response{}, wire.Errorf(spec.CodeInternal, "server %q made a task of %s that has no id", s.b.opts.Name, s.req.Method)
	}
	held := s.newHeld(id)
	life := s.b.held.Name(s.place, id, held.tool, wire.Get(made, "ttlMs"))
	first := held.begun(made)
	if !s.place.Hold(held, first, life) {
		return upstream.Response{}, mcp.ErrShutdown
	}
	return s.created(first.Text), nil
}

// keep keeps the result of a call that its server has answered at once, as that of a task. If there is
// no room, the result is that of the call, as for clients that hold none.
func (s *servedRequest) keep(a upstream.Response) upstream.Response {
	held, life := s.newHeld(""), s.b.opts.Settings.Tasks.Life()
	result := upstream.Keep(a.Result)
	task := wire.AppendEdited(nil, nil, wire.Edit{Name: "ttlMs", Value: strconv.AppendInt(nil, life.Milliseconds(), 10)}, wire.Edit{Name: "result", Value: result})
	status, message := upstream.TaskCompleted, ""
	if text, failed := mcp.FailedText(result); failed {
		status, message = upstream.TaskFailed, text
	}
	held.last = held.text(task, status, message)
	if !s.place.Hold(held, upstream.TaskState{Status: status, Text: held.last, Result: result}, life) {
		return a
	}
	a.Free()
	return s.created(held.text(task, upstream.TaskWorking, ""))
}

func (s *servedRequest) newHeld(id string) *heldTask {
	tool, _ := wire.GetString(s.req.Params, "name")
	held := &heldTask{in: s.b.held, table: s.place, id: id, tool: tool, asked: make(map[string]*heldQuestion), made: time.Now()}
	held.hear(s.req)
	return held
}

// created returns the result that tells a client of its task.
//
// Spec: 2025-11-25, basic/utilities/tasks, Creating Tasks.
func (s *servedRequest) created(task []byte) upstream.Response {
	s.place, s.inLegacyForm = nil, true
	edits := []wire.Edit{{Name: "task", Value: wire.AppendEdited(nil, task, wire.Edit{Name: "_meta"})}}
	if meta := wire.Get(task, "_meta"); meta != nil {
		edits = append(edits, wire.Edit{Name: "_meta", Value: meta})
	}
	return upstream.Response{Result: wire.AppendEdited(nil, nil, edits...)}
}
