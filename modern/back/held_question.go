package back

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// maxTaskQuestions bounds the questions of a task that are asked, or that were answered.
const maxTaskQuestions = 1000

// A heldQuestion is an input request of a task that a client holds. It is asked once; heldTask.mu
// guards it.
type heldQuestion struct {
	inputRequest
	withdraw  context.CancelFunc
	response  []byte // the client's; nil until then
	passing   bool   // it is on its way to the server
	delivered bool
	since     time.Time // of the server's first refusal that may pass
	refused   string    // why the server never takes it; else empty
	told      bool      // a look has found that
}

// question passes the questions of a task to the client, each key once, and withdraws those that the
// server has taken back. The error says that the client can't answer one, or has not been heeded.
//
// Spec: tasks extension 2026-07-28, Input Required; 2025-11-25, basic/utilities/tasks, Input Required Status.
func (h *heldTask) question(s *servedRequest, requests []byte) error {
	h.mu.Lock()
	if n := len(h.waiting); n > 0 {
		s = h.waiting[n-1].s // who is asked first
	}
	h.mu.Unlock()
	open := make(map[string]bool)
	for _, r := range inputRequestsOf(upstream.Keep(requests)) {
		key := wire.Unquote(r.key)
		open[key] = true
		h.mu.Lock()
		q, n := h.asked[key], len(h.asked)
		h.mu.Unlock()
		switch {
		case q != nil:
			if err := h.passAgain(s, q); err != nil {
				return err
			}
			continue
		case n == maxTaskQuestions:
			h.in.b.opts.Metrics.Limit(h.in.b.opts.Name, "task_questions")
			h.in.b.log.Warn("a task has failed that asks too often", "limit", n)
			return wire.Errorf(spec.CodeInternal, "server %q requested input for %s more than %d times, which is the limit", h.in.b.opts.Name, spec.MethodToolsCall, n)
		case s.checkInput(r.InputRequest) != nil:
			return s.checkInput(r.InputRequest)
		}
		h.ask(s, key, &heldQuestion{inputRequest: r})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, q := range h.asked {
		if !open[key] {
			q.withdraw()
		}
	}
	return nil
}

// ask asks who waits for the task, or who asked for it last, outside of its requests. If that is not
// possible, the next look tries again. The goroutine ends with the answer, with the request of who
// waits, or when the question is withdrawn.
func (h *heldTask) ask(s *servedRequest, key string, q *heldQuestion) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of, caller, doneLocked := context.Background(), h.aside, func() {}
	if n := len(h.waiting); n > 0 {
		w := h.waiting[n-1]
		of, caller, doneLocked = w.ctx, w.caller, func() { h.openLocked(w, -1) }
		h.openLocked(w, 1)
	}
	if h.left || caller == nil {
		doneLocked()
		return
	}
	ctx, cancel := context.WithTimeoutCause(of, roundTimeout, errNoAnswer)
	q.withdraw = cancel
	h.asked[key] = q
	started := h.in.Start(func(live context.Context) {
		defer func() { h.mu.Lock(); doneLocked(); h.mu.Unlock() }()
		defer cancel()
		defer context.AfterFunc(live, cancel)()
		h.pose(ctx, live, caller, s, key, q)
	})
	if !started {
		cancel()
		doneLocked()
	}
}

// openLocked counts a question of a waiter, whose time stands still while there are any.
func (h *heldTask) openLocked(w *waiter, n int) {
	w.asking.Add(n)
	switch w.open += n; {
	case w.clock == nil:
	case n > 0 && w.open == 1:
		w.clock.Pause()
	case w.open == 0:
		w.clock.Resume()
	}
}

// pose asks a question, and passes the answer to the server.
func (h *heldTask) pose(ctx, live context.Context, caller mcp.Caller, s *servedRequest, key string, q *heldQuestion) {
	asked := q.InputRequest
	if !h.runs {
		asked.Params = wire.EditedIn(asked.Params, "_meta", protocol.RelatedTo(h.table.ID))
	}
	got, err := caller.RequestInput(ctx, []mcp.InputRequest{asked})
	answered := err == nil && len(got) == 1 && got[0].Err == nil // whatever has ended in the same moment
	late := !answered && errors.Is(context.Cause(ctx), errNoAnswer)
	switch {
	case answered:
	case ctx.Err() != nil && !late, errors.Is(err, mcp.ErrCannotAsk) && !h.runs:
		h.mu.Lock()
		delete(h.asked, key) // it was withdrawn, or may be asked elsewhere
		h.mu.Unlock()
		return
	case late:
		err = errNoAnswer
	case err == nil && len(got) != 1:
		err = mcp.ErrCannotAsk
	}
	switch {
	case late && h.runs:
		h.fail(live, wire.Errorf(spec.CodeInternal, "server %q requested input for %s, and %v (%v)", h.in.b.opts.Name, spec.MethodToolsCall, errNoAnswer, roundTimeout))
		return
	case err != nil && h.runs:
		h.fail(live, wire.Errorf(spec.CodeInternal, "server %q requested input for %s, and the client can't be asked: %v", h.in.b.opts.Name, spec.MethodToolsCall, err))
		return
	case err != nil:
		got = []mcp.InputResponse{mcp.Unanswered(q.Method, err)}
	}
	response, err := s.response(q.InputRequest, got[0])
	if err != nil {
		h.fail(live, err)
		return
	}
	h.mu.Lock()
	q.response, q.passing = response, true
	h.mu.Unlock()
	h.pass(live, s, q)
}

// pass passes an answer to the server, alone, under its key.
//
// Spec: tasks extension 2026-07-28, tasks/update.
func (h *heldTask) pass(ctx context.Context, s *servedRequest, q *heldQuestion) {
	t := &taskRun{s: s, id: h.id}
	response := append(append(append([]byte{'{'}, q.key...), ':'), q.response...)
	a, done, err := t.send(ctx, spec.MethodTaskUpdate, wire.Edit{Name: "inputResponses", Value: append(response, '}')})
	var refusal *wire.Error
	if err == nil && a.Err != nil {
		refusal = a.TakeError()
	}
	done()
	h.mu.Lock()
	q.passing, q.delivered = false, err == nil && refusal == nil
	q.refuse(refusal, a.Status, h.in.b.opts.Settings.Timeouts.Own())
	settled := q.delivered || q.refused != ""
	if settled {
		h.pause = upstream.MinTaskPause
	}
	h.mu.Unlock()
	switch {
	case err != nil:
		h.in.b.log.Info("the answer to a question of a task is passed again when the server can be reached", "error", transport.Cause(err))
	case refusal != nil:
		h.in.b.log.Info("a server has refused the answer to a question of a task", "error", refusal.Message, "again", !settled)
	}
	if settled {
		h.table.Notice()
	}
}

// refuse notes that the server has refused the answer. What may pass, as that it is busy, is waited for
// as long as a server may be away.
func (q *heldQuestion) refuse(e *wire.Error, status int, most time.Duration) {
	if e == nil {
		return
	}
	if q.since.IsZero() {
		q.since = time.Now()
	}
	passes := e.Code == spec.CodeInternal || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	if !passes || time.Since(q.since) > most {
		q.refused = reason(e.Message)
	}
}

// passAgain passes an answer again that the server has not taken. If it never does, the error says so:
// the question would stay open for as long as the task. The first look that still finds it open may
// have begun before the refusal, and the task may have ended since.
func (h *heldTask) passAgain(s *servedRequest, q *heldQuestion) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case q.told:
		return wire.Errorf(spec.CodeInternal, "server %q refused the client's answer to its input request for %s: %s", h.in.b.opts.Name, spec.MethodToolsCall, q.refused)
	case q.refused != "":
		q.told = true
	case q.response != nil && !q.passing && !q.delivered:
		q.passing = h.in.Start(func(live context.Context) { h.pass(live, s, q) }) // each request has a time limit
	}
	return nil
}

// fail fails the task for its clients, since its server can't have an answer that it needs, and
// cancels it there.
func (h *heldTask) fail(ctx context.Context, why error) {
	e := mcp.WireError(why)
	h.end(upstream.TaskFailed, mcp.Shorten(e.Message), e)
	h.run().cancel(ctx)
	h.table.Refresh()
}
