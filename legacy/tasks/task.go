package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// The names of 2025-11-25.
const (
	MethodGet    = "tasks/get"
	MethodResult = spec.MethodTaskResult
	MethodCancel = "tasks/cancel"
	NotifyStatus = spec.NotifyTaskStatus
)

// Params returns the params of a call that is to run as a task, which the server may delete
// after ttl.
func Params(params []byte, ttl time.Duration) []byte {
	task := wire.AppendEdited(nil, nil, wire.Edit{Name: "ttl", Value: strconv.AppendInt(nil, ttl.Milliseconds(), 10)})
	return wire.AppendEdited(nil, params, wire.Edit{Name: "task", Value: task})
}

// IDOf returns the id in the response of a server that has created a task, and whether it has.
func IDOf(created []byte) (id string, ok bool) {
	return wire.GetString(wire.Get(created, "task"), "taskId")
}

// A requester sends a request about a task. The error is the server's as a [*wire.Error], a
// [*upstream.Failure], or ctx's cause.
type requester interface {
	Request(ctx context.Context, method string, params []byte) (json.RawMessage, error)
}

// A task is one task at its server. The server sends the result, and may send its input requests,
// while tasks/result is in flight, which is so once at most. Looks do not overlap.
//
// Spec: 2025-11-25, basic/utilities/tasks.
type task struct {
	// Set before the task is used, read-only after.
	id      string
	changed func()         // called when tasks/result has been answered
	running sync.WaitGroup // looks, and tasks/result; none begins once closed is set

	// mu guards the fields below. It is held for work in memory only.
	mu      sync.Mutex
	at      requester
	state   state
	end     context.CancelFunc // of the look; nil while there is none
	unfetch context.CancelFunc // of tasks/result; nil before the first
	fetched *fetch
	closed  bool
	early   bool // the server answers tasks/result before the end: another request would not help
}

// A fetch is a tasks/result.
type fetch struct {
	done   chan struct{} // closed once it is answered
	began  time.Time
	result json.RawMessage
	err    error
}

// A finding is what a look has found.
type finding struct {
	state
	result json.RawMessage // of a task that is completed
	err    error           // of one that has failed
}

func newTask(at requester, created []byte, changed func()) *task {
	t := &task{at: at, changed: changed}
	t.id, _ = IDOf(created)
	t.state = readState(wire.Get(created, "task"))
	return t
}

// close ends what goes on, and waits for it.
func (t *task) close() {
	t.mu.Lock()
	t.closed = true
	if t.end != nil {
		t.end()
	}
	if t.unfetch != nil {
		t.unfetch()
	}
	t.mu.Unlock()
	t.running.Wait()
}

// enter returns the context of a look, which ends with the task, too, and a function that ends the
// look. It returns false if the task is closed.
func (t *task) enter(ctx context.Context) (context.Context, func(), bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ctx, func() {}, false
	}
	t.running.Add(1)
	ctx, t.end = context.WithCancel(ctx)
	return ctx, t.leave, true
}

// leave ends a look.
func (t *task) leave() {
	t.mu.Lock()
	t.end()
	t.end = nil
	t.mu.Unlock()
	t.running.Done()
}

// move has the task looked at elsewhere.
func (t *task) move(to requester) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.fetched, t.early = to, nil, false
}

// IDParams returns params that name a task.
func IDParams(id string) []byte {
	return wire.AppendEdited(nil, nil, wire.Edit{Name: "taskId", Value: wire.Quote(id)})
}

// look asks the server for the state, and for what the task came to once it is over: the answer to
// tasks/result decides that, since servers differ in their words. The error is a [*upstream.Failure],
// ctx's cause, or one of the server that may pass; see isGone.
func (t *task) look(ctx context.Context) (finding, error) {
	ctx, leave, ok := t.enter(ctx)
	defer leave()
	if !ok {
		return finding{}, errClosed
	}
	t.mu.Lock()
	at, f := t.at, t.fetched
	t.mu.Unlock()
	if f != nil && wake.Closed(f.done) && f.settles(false) {
		return t.completed(f), nil
	}
	text, err := at.Request(ctx, MethodGet, IDParams(t.id))
	if err != nil {
		return finding{}, err
	}
	s := readState(text)
	f = t.note(s)
	switch {
	case s.status == upstream.TaskCancelled:
		return finding{state: s}, nil
	case upstream.TaskOver(s.status):
		return t.outcome(ctx, f)
	}
	return finding{state: s}, nil
}

// note stores a state, and returns the tasks/result of the task, which it sends if the server wants
// input, or the task is over.
func (t *task) note(s state) *fetch {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state = s
	over := upstream.TaskOver(s.status)
	if f := t.fetched; f != nil && wake.Closed(f.done) && !f.settles(over) {
		t.fetched = nil
		t.early = f.err == nil || !isLoss(f.err)
	}
	wanted := over && s.status != upstream.TaskCancelled || s.status == upstream.TaskInputRequired && !t.early
	if s.status != upstream.TaskInputRequired {
		t.early = false
	}
	if wanted && t.fetched == nil && !t.closed {
		t.fetchLocked()
	}
	return t.fetched
}

// settles reports whether the answer says what the task came to, of which a look has found that it is
// over, or not. An empty result can be that of a task that has failed, as only a look says.
func (f *fetch) settles(over bool) bool {
	if f.err == nil {
		return isCallResult(f.result)
	}
	return over && !isLoss(f.err)
}

// isLoss reports whether an error says nothing of the task.
func isLoss(err error) bool {
	_, answered := errors.AsType[*wire.Error](err)
	return !answered
}

// fetchLocked sends tasks/result. Its goroutine ends with the response, or with the task.
func (t *task) fetchLocked() {
	f, at := &fetch{done: make(chan struct{}), began: time.Now()}, t.at
	live, end := context.WithCancel(context.Background())
	t.fetched, t.unfetch = f, end
	t.running.Go(func() {
		defer end()
		f.result, f.err = at.Request(live, MethodResult, IDParams(t.id))
		close(f.done)
		t.changed()
	})
}

// errClosed is why nothing is found out of a task any more.
var errClosed = errors.New("nobody waits for the task any more")

// outcome waits for what a task that is over came to.
func (t *task) outcome(ctx context.Context, f *fetch) (finding, error) {
	if f == nil {
		return finding{}, errClosed
	}
	if err := wake.Await(ctx, f.done); err != nil {
		return finding{}, err
	}
	switch {
	case f.err == nil:
		return t.completed(f), nil
	case isLoss(f.err):
		return finding{}, f.err
	}
	return t.failed(f.err), nil
}

func (t *task) failed(why error) finding {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.status = upstream.TaskFailed
	return finding{state: t.state, err: why}
}

// completed returns what a task came to that has a result. Some servers have an empty one for a task
// that has failed, whose message says why.
func (t *task) completed(f *fetch) finding {
	t.mu.Lock()
	failed, message := t.state.status == upstream.TaskFailed, t.state.message
	t.mu.Unlock()
	if failed && !isCallResult(f.result) {
		if message == "" {
			message = "the server says that the task has failed, and not why"
		}
		return t.failed(wire.Errorf(spec.CodeInternal, "%s", message))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.status = upstream.TaskCompleted
	return finding{state: t.state, result: withoutTask(f.result)}
}

// isCallResult reports whether a result has what those of tools/call have.
func isCallResult(result []byte) bool {
	return wire.HasAny(result, "content", "structuredContent", "isError")
}

// isOver reports whether the task is known to be over.
func (t *task) isOver() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return upstream.TaskOver(t.state.status)
}

// isGone reports whether a server's error to tasks/get says that it does not know the task.
func isGone(err error) bool {
	we, ok := errors.AsType[*wire.Error](err)
	return ok && slices.Contains([]int64{spec.CodeInvalidParams, spec.CodeInvalidRequest, spec.CodeMethodNotFound}, we.Code)
}

// withoutTask returns a result without the id of its task, which clients can't use.
func withoutTask(result []byte) []byte {
	meta := wire.Get(result, "_meta")
	if wire.Get(meta, spec.MetaRelatedTask) == nil {
		return result
	}
	return wire.AppendEdited(nil, result, wire.Edit{Name: "_meta", Value: wire.Without(meta, spec.MetaRelatedTask)})
}
