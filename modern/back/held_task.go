package back

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// A heldTask is a task of the server that clients of 2025-11-25 hold, or the result that is kept for
// one, or a task that is run for a call. It implements [upstream.TaskSource], and is safe for concurrent use.
type heldTask struct {
	// Set before the task is used, read-only after.
	in    *heldTasks
	table *upstream.Task
	id    string    // the server's; empty if there is a result alone
	tool  string    // of the call
	made  time.Time // or listed again
	runs  bool      // it is run for a call, whose client knows of none

	// mu guards the fields below. Nothing is sent while it is held; Tasks.mu may be taken under it.
	mu       sync.Mutex
	asker    *mcp.Request // on whose behalf the server is asked: who asked last
	aside    mcp.Caller   // likewise
	waiting  []*waiter
	last     []byte              // the task, as it was told last
	over     *upstream.TaskState // what the gateway has made of it, whatever its server says; else nil
	pause    time.Duration       // until the next look, while somebody waits
	interval time.Duration       // at most; zero if it is not known
	away     time.Time           // since when the server can't be reached; zero if it can
	asked    map[string]*heldQuestion
	left     bool
}

// A waiter waits for the end of a task.
type waiter struct {
	s      *servedRequest // has what its client has declared
	caller mcp.Caller
	clock  *mcp.Clock      // stands still while the caller is asked; may be nil
	ctx    context.Context // of its request
	fail   context.CancelCauseFunc
	open   int // questions that its request passes; heldTask.mu guards it
	asking sync.WaitGroup
}

// begun returns the state of a task that was made, or listed again.
func (h *heldTask) begun(made []byte) upstream.TaskState {
	h.last = upstream.Keep(h.text(made, upstream.TaskWorking, "")) // without room for more
	return upstream.TaskState{Status: upstream.TaskWorking, Text: h.last, Pause: upstream.MinTaskPause}
}

// hear notes who asks for the task, and returns on whose behalf the server is asked then.
func (h *heldTask) hear(req *mcp.Request) *servedRequest {
	on := *req
	on.Method, on.Params, on.Extra, on.Plain, on.ParamHeaders, on.ProgressToken = spec.MethodToolsCall, nil, nil, wire.Plain{}, nil, nil
	on.Observed, on.Aside = mcp.Observed{}, nil
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asker, h.aside = &on, req.Aside
	return &servedRequest{b: h.in.b, req: &on}
}

// run returns what requests about the task are sent with.
func (h *heldTask) run() *taskRun {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &taskRun{s: &servedRequest{b: h.in.b, req: h.asker}, id: h.id}
}

// Look implements [upstream.TaskSource].
func (h *heldTask) Look(ctx context.Context) (upstream.TaskState, error) {
	if s := h.ended(); s != nil {
		return *s, nil
	}
	t := h.run()
	a, done, err := t.send(ctx, spec.MethodTaskGet)
	defer done()
	refused := err == nil && a.Err != nil
	if refused {
		err = h.refusal(t.s.req, a.TakeError())
	}
	if err != nil {
		return upstream.TaskState{Pause: h.missed(err, refused)}, err
	}
	t.read(a.Result)
	s := h.stateOf(t, a.Result)
	if !s.IsOver() {
		if err := h.question(t.s, wire.Get(a.Result, "inputRequests")); err != nil {
			h.fail(ctx, err)
		}
	}
	if s := h.ended(); s != nil {
		return *s, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away, h.last = time.Time{}, s.Text
	h.interval = t.interval
	s.Pause = h.nextPauseLocked()
	return s, nil
}

// nextPauseLocked returns the time until the next look: it doubles up to what the server asks for.
func (h *heldTask) nextPauseLocked() time.Duration {
	pause := min(max(h.pause, upstream.MinTaskPause), cmp.Or(h.interval, upstream.TaskPause))
	h.pause = 2 * pause
	return pause
}

// ended returns what the gateway has made of the task; nil if its server has the say.
func (h *heldTask) ended() *upstream.TaskState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// end ends the task for its clients, whatever becomes of it at the server.
func (h *heldTask) end(status, message string, why *wire.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over == nil {
		edits := []wire.Edit{{Name: "status", Value: wire.Quote(status)}, {Name: "lastUpdatedAt", Value: protocol.Timestamp(time.Now())}, {Name: "statusMessage", Value: quoted(message)}}
		h.last = wire.AppendEdited(nil, h.last, edits...)
		h.over = &upstream.TaskState{Status: status, Text: h.last, Err: why}
	}
}

// refusal returns the error for a client whose server has refused a request about the task.
func (h *heldTask) refusal(req *mcp.Request, e *wire.Error) error {
	if h.runs {
		return wire.Errorf(spec.CodeInternal, "server %q did not return the state of the task that runs the tool: %s; it may have taken effect", h.in.b.opts.Name, mcp.Shorten(e.Message))
	}
	if e.Code == spec.CodeInvalidParams {
		return h.in.Unknown(nil) // it is a client's to know which task is meant
	}
	return h.in.b.upstreamError(req, e)
}

// missed notes a look that came to nothing. Who waits gets the error if the server has refused it, or
// could not be reached for too long.
func (h *heldTask) missed(err error, refused bool) (pause time.Duration) {
	h.in.b.log.Debug("looking at a task", "error", transport.Cause(err))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away.IsZero() {
		h.away = time.Now()
	}
	if refused || time.Since(h.away) > h.in.b.opts.Settings.Timeouts.Own() {
		for _, w := range h.waiting {
			w.fail(err)
		}
	}
	return h.nextPauseLocked()
}

// await waits until the task is over, and returns its end. told is told what the looks have found
// before, and whether the caller is being asked. While somebody waits, the task is looked at at
// intervals that double; with atOnce the first look is now.
func (h *heldTask) await(ctx context.Context, w *waiter, atOnce bool, told func(s upstream.TaskState, asked bool)) (upstream.TaskState, error) {
	w.ctx, w.fail = context.WithCancelCause(ctx)
	h.enter(w)
	defer h.leave(w)
	var last upstream.TaskState
	err := h.table.Follow(w.ctx, atOnce, func(s upstream.TaskState, _ bool) error {
		if last = s; !s.IsOver() {
			h.mu.Lock()
			asked := w.open > 0
			h.mu.Unlock()
			told(s, asked)
		}
		return nil
	})
	switch {
	case err != nil:
		return last, err
	case !last.IsOver():
		return last, h.in.Unknown(nil) // its time is up
	}
	return last, nil
}

func (h *heldTask) enter(w *waiter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting = append(h.waiting, w); len(h.waiting) == 1 && !h.runs {
		h.pause = upstream.MinTaskPause
	}
}

// leave ends what is done for a waiter, and waits for it.
func (h *heldTask) leave(w *waiter) {
	h.mu.Lock()
	for i := range h.waiting {
		if h.waiting[i] == w {
			h.waiting = append(h.waiting[:i:i], h.waiting[i+1:]...)
			break
		}
	}
	h.mu.Unlock()
	w.fail(nil)
	w.asking.Wait()
}

// outcome returns what the task came to, as the result of tasks/result.
//
// Spec: 2025-11-25, basic/utilities/tasks, Result Retrieval.
func (h *heldTask) outcome(s *upstream.TaskState) (*mcp.Result, error) {
	switch {
	case s.Err != nil:
		return nil, s.Err
	case s.Result == nil:
		return nil, wire.Errorf(spec.CodeInternal, "server %q did not return what the task came to; ask again", h.in.b.opts.Name)
	}
	res := mcp.NewResult(wire.EditedIn(s.Result, "_meta", protocol.RelatedTo(h.table.ID)), nil)
	res.Era, res.Tool = spec.Modern, h.tool
	return res, nil
}

// Cancel cancels the task at the server, and then, whatever that makes of it, for its clients.
//
// Spec: 2025-11-25, basic/utilities/tasks, Task Cancellation; tasks extension 2026-07-28, tasks/cancel.
func (h *heldTask) Cancel(ctx context.Context) (upstream.TaskState, error) {
	s, err := h.table.Get(ctx)
	if err != nil {
		return s, err
	}
	if !s.IsOver() {
		t := h.run()
		a, done, err := t.send(ctx, spec.MethodTaskCancel)
		if err == nil && a.Err != nil {
			err = h.refusal(t.s.req, a.TakeError())
		}
		if done(); err != nil {
			return s, err
		}
		h.end(upstream.TaskCancelled, "", wire.Errorf(spec.CodeInternal, "the task was cancelled by its client"))
		if s, err = h.table.Get(ctx); err != nil { // of a look that had begun before
			s, err = h.table.Get(ctx)
		}
		if err != nil || s.Status == upstream.TaskCancelled {
			return s, err
		}
	}
	return s, wire.Errorf(spec.CodeInvalidParams, "the task is over, and can't be cancelled: it is %s", s.Status)
}

// Leave implements [upstream.TaskSource].
func (h *heldTask) Leave(bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = true
	for _, q := range h.asked {
		q.withdraw()
	}
}

// stateOf returns the state that a look has found.
func (h *heldTask) stateOf(t *taskRun, task []byte) upstream.TaskState {
	s := upstream.TaskState{Status: t.status}
	message := ""
	switch {
	case h.runs && upstream.TaskOver(t.status):
		a, err := t.outcome(task)
		s.Result, s.Err = upstream.Keep(a.Result), err
	case upstream.TaskOver(t.status):
		a, err := t.outcome(task)
		s.Result = upstream.Keep(a.Result)
		if text, failed := mcp.FailedText(a.Result); failed {
			s.Status, message = upstream.TaskFailed, text
		}
		if err != nil {
			if s.Err = err; t.status == upstream.TaskCompleted {
				s.Status = upstream.TaskFailed
			}
			if t.message == "" && s.Status == upstream.TaskFailed {
				message = mcp.Shorten(mcp.WireError(err).Message)
			}
		}
	case t.status != upstream.TaskInputRequired:
		s.Status = upstream.TaskWorking
	}
	s.Text = h.text(task, s.Status, message)
	return s
}

// text returns a task of the server, as clients of 2025-11-25 read it. message replaces its own, if it
// is not empty.
func (h *heldTask) text(task []byte, status, message string) []byte {
	form := protocol.LegacyTask{ID: h.table.ID, Status: status, TTL: []byte("null"), Message: quoted(message), Made: protocol.Timestamp(h.made)}
	if ms, ok := upstream.Milliseconds(wire.Get(task, "ttlMs")); ok {
		form.TTL = strconv.AppendInt(nil, ms, 10)
	}
	if ms, ok := upstream.Milliseconds(wire.Get(task, "pollIntervalMs")); ok {
		form.Interval = strconv.AppendInt(nil, ms, 10)
	}
	return form.Append(nil, task)
}
