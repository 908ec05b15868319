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

const (
	// quietPoll is how long a caller who wants progress hears nothing of a task
	// about which there is nothing new: clients give up after a silent minute.
	quietPoll = 10 * time.Second
	// progressStep is what progress grows by that the gateway makes up: so little
	// that a server's own stands above it.
	progressStep = 0.001
)

// A Call is the call that a task answers.
type Call interface {
	// Request sends a request that is a part of the call. The error is the server's as a
	// [*wire.Error], a [*upstream.Failure], or ctx's cause.
	Request(ctx context.Context, method string, params []byte) (json.RawMessage, error)
	// BeingAsked reports whether its caller is asked for input.
	BeingAsked() bool
	// Restart begins the wait for the call's result anew.
	Restart()
	// Progress tells its caller of progress, unless it wants none or has heard of more.
	Progress(value []byte, message string)
}

// A Task is one call that its server runs as a task.
type Task struct {
	server string
	log    *slog.Logger
	call   Call
	id     string
	look   wake.Signal

	// Of Await's goroutine alone.
	state state
	steps int       // of progress made up
	told  time.Time // when the caller last heard of the task
}

// Params returns the params of a call that is to be run as a task, which the server may
// forget after a time.
func Params(params []byte, ttl time.Duration) []byte {
	task := wire.AppendEdited(nil, nil, wire.Edit{Name: "ttl", Value: strconv.AppendInt(nil, ttl.Milliseconds(), 10)})
	return wire.AppendEdited(nil, params, wire.Edit{Name: "task", Value: task})
}

// New returns the task that a server has made of a call; nil if created, its answer, names
// none: then it has run the tool at once.
func New(server string, log *slog.Logger, call Call, created []byte) *Task {
	text := wire.Get(created, "task")
	id, ok := wire.GetString(text, "taskId")
	if !ok {
		return nil
	}
	return &Task{server: server, log: log, call: call, id: id, state: readState(text), look: wake.NewSignal()}
}

// LookNow says that the task's state has changed.
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

// A fetched is what tasks/result was answered with.
type fetched struct {
	result json.RawMessage
	err    error
}

// Await looks at the task until it is over and returns its result. The server
// gives it, and asks what it has to ask, while tasks/result is under way.
//
// Spec: 2025-11-25, basic/utilities/tasks.
func (t *Task) Await(ctx context.Context) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	var fetching chan fetched // nil unless under way
	defer func() {
		cancel()
		if fetching != nil {
			<-fetching
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	early := false // it answers before the end: no use to ask sooner
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

// fetch calls tasks/result. What it starts ends with the answer, or ctx; Await
// waits for it.
func (t *Task) fetch(ctx context.Context) chan fetched {
	got := make(chan fetched, 1)
	go func() {
		result, err := t.call.Request(ctx, MethodResult, t.params())
		got <- fetched{withoutTask(result), err}
	}()
	return got
}

// isResult reports whether the answer to tasks/result is the call's. Before the
// end of the task an error is not, though some servers give one.
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

// update asks how the task is. A server that can't be reached is asked again: the
// call's time bounds it. A caller who is being asked is not told of progress.
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
		return wire.Errorf(spec.CodeInternal, "server %q does not know how the task is that runs the tool: %s; it may have taken effect", t.server, we.Message)
	case f != nil && f.Lost:
		return err
	case err != nil:
		t.log.Debug("looking at task", "error", transport.Cause(err))
		t.state.poll = min(2*t.state.poll, maxPoll)
		return nil
	}
	before := t.state
	t.state = readState(text)
	t.call.Restart()
	if t.state.differs(before) || time.Since(t.told) >= quietPoll {
		t.tell()
	}
	return nil
}

// tell makes progress of a state.
func (t *Task) tell() {
	t.told = time.Now()
	t.steps++
	t.call.Progress(strconv.AppendFloat(nil, float64(t.steps)*progressStep, 'f', 3, 64), t.state.message)
}

func (t *Task) cancelled() error {
	why := t.state.message
	if why == "" {
		why = "it gave no reason"
	}
	return wire.Errorf(spec.CodeInternal, "server %q cancelled the task that ran the tool: %s", t.server, mcp.Shorten(why))
}

// withoutTask returns a result without the name of its task, which is nothing to
// the client.
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
