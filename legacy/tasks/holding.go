package tasks

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Holding has the tasks that a server runs, and serves the methods of the tasks extension for
// clients of 2026-07-28 that hold some. All fields are required, but for Quirks.
type Holding struct {
	*upstream.Tasks
	Server string // its name
	Log    *slog.Logger
	Quirks *quirks.Recorder
	// Describe describes the server; see [mcp.Describer].
	Describe func(ctx context.Context, req *mcp.Request) (*mcp.Description, error)
	// Error converts an error of the server to one for a client of 2026-07-28, and Explain the reason
	// why it could not be asked.
	Error   func(req *mcp.Request, e *wire.Error, declared bool) error
	Explain func(method string, err error) error
}

// failed returns the error of a task for its client. lacked is the capability that a question needed
// which the client did not declare; nil for none.
func (h *Holding) failed(e *wire.Error, lacked []byte) *wire.Error {
	if lacked != nil {
		return mcp.WireError(mcp.LackedCapability(lacked, e.Message))
	}
	return mcp.WireError(h.Error(&mcp.Request{Method: spec.MethodToolsCall}, e, true))
}

// came returns the result of a task for its client, or the error if it failed for want of a capability.
func (h *Holding) came(result json.RawMessage, lacked []byte) (json.RawMessage, *wire.Error) {
	if text, failed := mcp.FailedText(result); failed && lacked != nil {
		return nil, mcp.WireError(mcp.LackedCapability(lacked, text))
	}
	result, met := mended(result)
	for _, q := range met {
		h.Quirks.Met(q, "")
	}
	return result, nil
}

// Serve serves a request about tasks: one of the extension's methods, or a listen stream.
//
// Spec: tasks extension 2026-07-28.
func (h *Holding) Serve(ctx context.Context, req *mcp.Request, caller mcp.Caller) (*mcp.Result, error) {
	if req.Method == spec.MethodListen {
		if err := mcp.CheckTasks(ctx, req, h.Server, h.Describe); err != nil {
			return nil, err
		}
		return h.listen(ctx, req, caller)
	}
	id, named := wire.GetString(req.Params, "taskId")
	task, err := h.Find(req.Principal, id)
	if !named {
		err = mcp.Refuse(spec.CodeInvalidParams, "params.taskId is missing or not a string")
	}
	if task == nil || !mcp.DeclaresTasks(req) {
		if refused := mcp.CheckTasks(ctx, req, h.Server, h.Describe); refused != nil {
			return nil, refused
		}
		return nil, err
	}
	held, _ := task.Source().(*Held) // all that have ids are
	held.Identify(req.Identity)
	body := []byte(`{"resultType":"complete"}`)
	switch req.Method {
	case spec.MethodTaskGet:
		state, err := task.Get(ctx)
		if err != nil {
			return nil, h.unknown(ctx, req, err)
		}
		body = Body(&state, spec.ResultComplete)
	case spec.MethodTaskUpdate:
		held.Update(wire.Get(req.Params, "inputResponses"))
	case spec.MethodTaskCancel:
		if _, err := held.Cancel(ctx); err != nil {
			return nil, h.unknown(ctx, req, err)
		}
	}
	res := mcp.NewResult(body, nil)
	res.Era = spec.Modern // it is in that form
	if d, err := h.Describe(mcp.Known, req); err == nil {
		res.ServerInfo = d.ServerInfo
	}
	return res, nil
}

// unknown returns the error for a client whose task can't be looked at. The task is as it was.
func (h *Holding) unknown(ctx context.Context, req *mcp.Request, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	h.Log.Debug("a task can't be looked at", "method", req.Method, "error", transport.Cause(err))
	return h.Explain(req.Method, err)
}

// listen tells a client of changes of its tasks, until ctx ends.
//
// Spec: tasks extension 2026-07-28, Task Status Notifications.
func (h *Holding) listen(ctx context.Context, req *mcp.Request, caller mcp.Caller) (*mcp.Result, error) {
	var own []*upstream.Task
	granted, seen := []byte{'['}, make(map[string]bool)
	for text := range wire.Elements(wire.Get(wire.Get(req.Params, "notifications"), spec.FilterTaskIDs)) {
		id := wire.Unquote(text)
		if task, err := h.Find(req.Principal, id); err == nil && !seen[id] {
			own, granted = append(own, task), append(wire.AppendString(granted, id), ',')
			seen[id] = true
		}
	}
	var filter []wire.Edit
	if len(own) > 0 {
		filter = append(filter, wire.Edit{Name: spec.FilterTaskIDs, Value: wire.CloseArray(granted)})
	}
	ack := wire.AppendEdited(nil, nil, wire.Edit{Name: "notifications", Value: wire.AppendEdited(nil, nil, filter...)})
	if err := caller.Notify(ctx, mcp.Notification{Method: spec.NotifyAcknowledged, Params: ack}); err != nil {
		return nil, err
	}
	var following sync.WaitGroup
	for _, task := range own {
		following.Go(func() { // ends with the task, or with ctx
			_ = task.Follow(ctx, true, func(s upstream.TaskState, changed bool) error {
				if !changed {
					return nil
				}
				return caller.Notify(ctx, mcp.Notification{Method: spec.NotifyTasks, Params: Body(&s, "")})
			})
		})
	}
	following.Wait()
	<-ctx.Done() // a task that is over ends no stream
	return nil, context.Cause(ctx)
}
