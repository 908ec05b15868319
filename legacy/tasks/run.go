package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Call is a call that runs as a task, of which its client does not know.
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

// A Run is the task of one call. It implements [upstream.TaskSource].
type Run struct {
	*task
	server string
	log    *slog.Logger
	call   Call
	table  *upstream.Task
}

// NewRun returns the task that a server has created for a call, whose response has its id.
func NewRun(in *upstream.Tasks, server string, log *slog.Logger, call Call, created []byte) *Run {
	r := &Run{server: server, log: log, call: call}
	r.task = newTask(call, created, func() { r.table.Refresh() })
	r.table = in.Run(r, upstream.TaskState{Status: upstream.TaskWorking, Text: r.state.text, Pause: r.state.pause})
	return r
}

// ID returns the id of the task at its server.
func (r *Run) ID() string { return r.id }

// Notice says that the task's state has changed, so that it is looked at at once.
func (r *Run) Notice() { r.table.Notice() }

// CancelParams returns the params of tasks/cancel; nil if the task is over.
func (r *Run) CancelParams() []byte {
	if r.isOver() {
		return nil
	}
	return IDParams(r.id)
}

// Await looks at the task until it is over, and returns its result. Meanwhile the client gets
// progress.
//
// Spec: 2025-11-25, basic/utilities/tasks.
func (r *Run) Await(ctx context.Context) (json.RawMessage, error) {
	defer r.close()
	var steps mcp.Steps
	var last upstream.TaskState
	err := r.table.Follow(ctx, false, func(s upstream.TaskState, changed bool) error {
		last = s
		if !s.IsOver() && r.call.BeingAsked() {
			return nil
		}
		r.call.Restart()
		if value, due := steps.Next(changed); due {
			message, _ := wire.GetString(s.Text, "statusMessage")
			r.call.Progress(value, message)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case last.Status == upstream.TaskCancelled:
		return nil, r.cancelled(last.Text)
	case last.Err != nil:
		return nil, last.Err
	}
	return last.Result, nil
}

// Look implements [upstream.TaskSource]. A client that is being asked for input gets no progress,
// so nothing is asked. If the server can't be reached, it is asked again later: the call's time
// limit bounds that.
func (r *Run) Look(ctx context.Context) (upstream.TaskState, error) {
	if r.call.BeingAsked() {
		r.mu.Lock()
		defer r.mu.Unlock()
		return upstream.TaskState{Status: r.state.status, Text: r.state.text, Pause: r.state.pause}, nil
	}
	f, err := r.look(ctx)
	switch failure := upstream.AsFailure(err); {
	case failure != nil && failure.Lost:
		return upstream.TaskState{Status: upstream.TaskFailed, Err: failure}, nil
	case isGone(err):
		return upstream.TaskState{Status: upstream.TaskFailed, Err: gone(r.server, err)}, nil
	case err != nil:
		r.log.Debug("looking at a task", "error", transport.Cause(err))
		return upstream.TaskState{}, err
	}
	return upstream.TaskState{Status: f.status, Text: f.text, Result: f.result, Err: f.err, Pause: f.pause}, nil
}

// Leave implements [upstream.TaskSource].
func (r *Run) Leave(bool) {}

// gone returns the error for a task that its server does not know.
func gone(server string, why error) *wire.Error {
	return wire.Errorf(spec.CodeInternal, "server %q did not return the state of the task that runs the tool: %s; it may have taken effect", server, mcp.Shorten(messageOf(why)))
}

// messageOf returns the text of a server's error, without its code.
func messageOf(err error) string {
	if we, ok := errors.AsType[*wire.Error](err); ok {
		return we.Message
	}
	return transport.Cause(err).Error()
}

func (r *Run) cancelled(text []byte) error {
	why, _ := wire.GetString(text, "statusMessage")
	if why == "" {
		why = "it gave no reason"
	}
	return wire.Errorf(spec.CodeInternal, "server %q cancelled the task that ran the tool: %s", r.server, mcp.Shorten(why))
}
