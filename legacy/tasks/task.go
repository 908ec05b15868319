package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// The names of 2025-11-25.
const (
	MethodGet    = "tasks/get"
	MethodResult = "tasks/result"
	MethodCancel = "tasks/cancel"
	NotifyStatus = "notifications/tasks/status"
	MetaRelated  = spec.MetaPrefix + "related-task"
)

// A Call is a call that runs as a task.
type Call interface {
	// Request sends a request that is part of the call. The error is the server's as a
	// [*wire.Error], a [*upstream.Failure], or ctx's cause.
	Request(ctx context.Context, method string, params []byte) (json.RawMessage, error)
	// BeingAsked reports whether the client is being asked for input.
	BeingAsked() bool
	// Restart restarts the time limit of the call's result.
	Restart()
	// Progress sends progress to the client, unless it wants none or has got a greater
	// value.
	Progress(value []byte, message string)
}

// A Task is one call that its server runs as a task.
type Task struct {
	server string
	log    *slog.Logger
	call   Call
	id     string
	look   wake.Signal

	// Used by Await's goroutine only.
	state state
	steps mcp.Steps
}

// Params returns the params of a call that is to run as a task, which the server may delete
// after ttl.
func Params(params []byte, ttl time.Duration) []byte {
	task := wire.AppendEdited(nil, nil, wire.Edit{Name: "ttl", Value: strconv.AppendInt(nil, ttl.Milliseconds(), 10)})
	return wire.AppendEdited(nil, params, wire.Edit{Name: "task", Value: task})
}

// New returns the task that a server has created for a call. It returns nil if created, the
// server's response, has no task id: then the server has run the tool at once.
func New(server string, log *slog.Logger, call Call, created []byte) *Task {
	text := wire.Get(created, "task")
	id, ok := wire.GetString(text, "taskId")
	if !ok {
		return nil
	}
	return &Task{server: server, log: log, call: call, id: id, state: readState(text), look: wake.NewSignal()}
}

// LookNow says that the task's state has changed, so that it is polled at once.
func (t *Task) LookNow() { t.look.Send() }

// CancelParams returns the params of tasks/cancel; nil if the task is over.
func (t *Task) CancelParams() []byte {
	if t.state.over() {
		return nil
	}
	return t.params()
}

func (t *Task) params() []byte {
	return wire.AppendEdited(nil, nil, wire.Edit{Name: "taskId", Value: wire.Quote(t.id)})
}

// A fetched is the response to tasks/result.
type fetched struct {
	result json.RawMessage
	err    error
}

// Await polls the task until it has ended, and returns its result. The server sends the
// result, and its input requests, while tasks/result is in flight.
//
// Spec: 2025-11-25, basic/utilities/tasks.
func (t *Task) Await(ctx context.Context) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	var fetching chan fetched // nil unless in flight
	defer func() {
		cancel()
		if fetching != nil {
			<-fetching
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	early := false // the server responds before the end: another request would not help
	for {
		if fetching == nil && (t.state.over() || t.state.status == "input_required" && !early) {
			if t.state.status == "cancelled" {
				return nil, t.cancelled()
			}
			fetching = t.fetch(ctx)
		}
		timer.Reset(t.state.poll)
		select {
		case got := <-fetching:
			fetching = nil
			done, err := t.isResult(ctx, got)
			if done || err != nil {
				return got.result, err
			}
			early = true
			continue
		case <-timer.C:
		case <-t.look:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if err := t.update(ctx); err != nil {
			return nil, err
		}
	}
}

// fetch sends tasks/result. Its goroutine ends with the response, or ctx; Await waits for
// it.
func (t *Task) fetch(ctx context.Context) chan fetched {
	got := make(chan fetched, 1)
	go func() {
		result, err := t.call.Request(ctx, MethodResult, t.params())
		got <- fetched{withoutTask(result), err}
	}()
	return got
}

// isResult reports whether the response to tasks/result is the call's. Before the end of
// the task an error is not, though some servers send one.
func (t *Task) isResult(ctx context.Context, got fetched) (bool, error) {
	f := upstream.AsFailure(got.err)
	switch {
	case got.err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case f != nil && f.Lost:
		return false, f
	case t.state.over() && f == nil:
		return false, got.err
	}
	if err := t.update(ctx); err != nil {
		return false, err
	}
	if t.state.over() && f == nil {
		return false, got.err
	}
	return false, nil
}

// update polls the task's state. If the server can't be reached, it is polled again later:
// the call's time limit bounds that. A client that is being asked for input gets no
// progress.
func (t *Task) update(ctx context.Context) error {
	if t.call.BeingAsked() {
		return nil
	}
	text, err := t.call.Request(ctx, MethodGet, t.params())
	var we *wire.Error
	f := upstream.AsFailure(err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &we):
		return wire.Errorf(spec.CodeInternal, "server %q did not return the state of the task that runs the tool: %s; it may have taken effect", t.server, we.Message)
	case f != nil && f.Lost:
		return err
	case err != nil:
		t.log.Debug("polling task", "error", transport.Cause(err))
		t.state.poll = min(2*t.state.poll, maxPoll)
		return nil
	}
	before := t.state
	t.state = readState(text)
	t.call.Restart()
	if value, due := t.steps.Next(t.state.differs(before)); due {
		t.call.Progress(value, t.state.message)
	}
	return nil
}

func (t *Task) cancelled() error {
	why := t.state.message
	if why == "" {
		why = "it gave no reason"
	}
	return wire.Errorf(spec.CodeInternal, "server %q cancelled the task that ran the tool: %s", t.server, mcp.Shorten(why))
}

// withoutTask returns a result without the id of its task, which clients can't use.
func withoutTask(result []byte) []byte {
	meta := wire.Get(result, "_meta")
	if wire.Get(meta, MetaRelated) == nil {
		return result
	}
	meta = wire.AppendEdited(nil, meta, wire.Edit{Name: MetaRelated})
	if string(meta) == "{}" {
		meta = nil
	}
	return wire.AppendEdited(nil, result, wire.Edit{Name: "_meta", Value: meta})
}
