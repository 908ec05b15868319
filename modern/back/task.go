package back

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// minLook and maxLook bound the time between two looks at a task, whatever its server asks for.
	minLook = 50 * time.Millisecond
	maxLook = 15 * time.Second
	// usualLook is the time between two looks if the server names none.
	usualLook = time.Second
	// maxTaskTools bounds the tools that are known to want a task, over all profiles of one server.
	maxTaskTools = 10_000
)

// taskTools are the tools that a server has refused to run without a task. Safe for concurrent use.
type taskTools struct {
	tools *lru.Cache[taskTool, struct{}]
}

type taskTool struct{ scope, name string }

func newTaskTools() (taskTools, error) {
	tools, err := lru.New[taskTool, struct{}](maxTaskTools)
	return taskTools{tools}, err
}

// forget removes the tools of a profile, whose list has changed.
func (t taskTools) forget(scope string) {
	for _, tool := range t.tools.Keys() {
		if tool.scope == scope {
			t.tools.Remove(tool)
		}
	}
}

// mayRun reports whether the request is a legacy client's call that can be run as a task. Another
// replica runs its clients' calls itself.
func (s *servedRequest) mayRun() bool {
	return s.req.Era == spec.Legacy && s.req.Method == spec.MethodToolsCall && s.b.opts.Peer == nil && !s.b.opts.Settings.WithoutTasks()
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

// declaring returns capabilities, an object or nil, with the tasks extension.
func declaring(capabilities []byte) []byte {
	extensions := wire.AppendEdited(nil, wire.Get(capabilities, "extensions"), wire.Edit{Name: spec.ExtensionTasks, Value: []byte("{}")})
	return wire.AppendEdited(nil, capabilities, wire.Edit{Name: "extensions", Value: extensions})
}

// A taskRun is a call of a legacy client that its server runs as a task, of which the client does
// not know. All of it belongs to the goroutine of run, but for what answers the channel.
type taskRun struct {
	s  *servedRequest
	id string

	status, message, updated string
	interval                 time.Duration // between looks, at most
	steps                    mcp.Steps
	away                     time.Time // since when the server can't be reached; zero if it can

	asked   map[string]context.CancelFunc // questions by their keys; nil once they are answered
	open    int                           // how many are not answered
	answers chan answered
	asking  sync.WaitGroup
}

// An answered is a question with the client's answer.
type answered struct {
	key, response []byte // response is nil for a question that was withdrawn
	err           error
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
	t := &taskRun{s: s, id: id, asked: make(map[string]context.CancelFunc), answers: make(chan answered)}
	ctx, cancel := context.WithCancel(ctx)
	defer t.asking.Wait()
	defer cancel()
	t.read(made)
	a, err := t.await(ctx)
	if err != nil && !t.over() {
		t.cancel(ctx)
	}
	if f := upstream.AsFailure(err); f != nil {
		err = &upstream.Failure{Cause: f.Cause, Fate: upstream.MayHaveRun, Lost: f.Lost}
	}
	return a, err
}

// await looks at the task until it is over. The pauses double from the shortest to the server's.
func (t *taskRun) await(ctx context.Context) (upstream.Response, error) {
	timer := time.NewTimer(minLook)
	defer timer.Stop()
	for pause := minLook; ; pause = min(2*pause, t.interval) {
		timer.Reset(pause)
		for looks := false; !looks; {
			select {
			case <-timer.C:
				looks = true
			case a := <-t.answers:
				if err := t.pass(ctx, a); err != nil {
					return upstream.Response{}, err
				}
				pause, looks = minLook, t.open == 0
			case <-ctx.Done():
				return upstream.Response{}, context.Cause(ctx)
			}
		}
		a, err := t.look(ctx)
		if err != nil || t.over() {
			return a, err
		}
	}
}

// look asks for the task's state. It returns the outcome if it is over. It is no error that the
// server can't be reached for a while: it may be there again, with its tasks.
func (t *taskRun) look(ctx context.Context) (upstream.Response, error) {
	a, done, err := t.send(ctx, spec.MethodTaskGet)
	defer func() {
		if done != nil {
			done()
		}
	}()
	switch {
	case ctx.Err() != nil:
		return upstream.Response{}, context.Cause(ctx)
	case err != nil:
		return upstream.Response{}, t.missed(err)
	case a.Err != nil:
		return upstream.Response{}, wire.Errorf(spec.CodeInternal, "server %q did not return the state of the task that runs the tool: %s; it may have taken effect", t.s.b.opts.Name, mcp.Shorten(a.Err.Message))
	}
	status, message, updated := t.status, t.message, t.updated
	t.away = time.Time{}
	t.read(a.Result)
	if t.over() {
		res, err := t.outcome(a.Result)
		if err == nil {
			res.Release, done = done, nil
		}
		return res, err
	}
	if err := t.question(ctx, wire.Get(a.Result, "inputRequests")); err != nil {
		return upstream.Response{}, err
	}
	if t.open == 0 {
		t.s.clock.Restart()
		t.tell(ctx, status != t.status || message != t.message || updated != t.updated)
	}
	return upstream.Response{}, nil
}

// missed notes a look without an answer. It returns err once there was none for too long.
func (t *taskRun) missed(err error) error {
	t.s.b.log.Debug("looking at a task", "error", transport.Cause(err))
	if t.away.IsZero() {
		t.away = time.Now()
	}
	if time.Since(t.away) > t.s.b.opts.Settings.Timeouts.Own() {
		return err
	}
	return nil
}

// read reads a task's state.
func (t *taskRun) read(task []byte) {
	t.status, _ = wire.GetString(task, "status")
	t.message, _ = wire.GetString(task, "statusMessage")
	t.updated, _ = wire.GetString(task, "lastUpdatedAt")
	t.interval = usualLook
	if ms, err := strconv.ParseFloat(string(wire.Get(task, "pollIntervalMs")), 64); err == nil {
		t.interval = max(minLook, time.Duration(min(max(ms, 0), float64(maxLook/time.Millisecond)))*time.Millisecond)
	}
}

func (t *taskRun) over() bool {
	return t.status == "completed" || t.status == "failed" || t.status == "cancelled"
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

// tell sends progress to a client that wants it.
func (t *taskRun) tell(ctx context.Context, changed bool) {
	token := t.s.req.ProgressToken
	if token == nil {
		return
	}
	value, due := t.steps.Next(changed)
	if !due || !t.s.clock.Advance(value) {
		return
	}
	edits := []wire.Edit{{Name: spec.MetaProgressToken, Value: token}, {Name: "progress", Value: value}}
	if t.message != "" {
		edits = append(edits, wire.Edit{Name: "message", Value: wire.Quote(t.message)})
	}
	_ = t.s.caller.Notify(ctx, mcp.Notification{Method: spec.NotifyProgress, Params: wire.AppendEdited(nil, nil, edits...)}) // if the client has left, ctx ends
}

// question passes the questions of a task to the client, each key once, and withdraws those that
// the server has taken back.
func (t *taskRun) question(ctx context.Context, requests []byte) error {
	all := inputRequestsOf(upstream.Keep(requests))
	now := make(map[string]bool)
	for _, q := range all {
		key := string(q.key)
		now[key] = true
		if _, known := t.asked[key]; known {
			continue
		}
		if err := t.s.checkInput(q.InputRequest); err != nil {
			return err
		}
		t.ask(ctx, q)
	}
	for key, cancel := range t.asked {
		if cancel != nil && !now[key] {
			cancel() // its goroutine says so
		}
	}
	return nil
}

// ask asks the client. Its goroutine ends with the answer, or with ctx; runTask waits for it.
func (t *taskRun) ask(ctx context.Context, q inputRequest) {
	short, cancel := context.WithTimeoutCause(ctx, roundTimeout, errNoAnswer)
	t.asked[string(q.key)] = cancel
	if t.open++; t.open == 1 {
		t.s.clock.Pause()
	}
	t.asking.Go(func() {
		defer cancel()
		a := answered{key: q.key}
		got, err := t.s.caller.RequestInput(short, []mcp.InputRequest{q.InputRequest})
		switch {
		case errors.Is(context.Cause(short), errNoAnswer):
			a.err = wire.Errorf(spec.CodeInternal, "server %q requested input for %s, and %v (%v)", t.s.b.opts.Name, t.s.req.Method, errNoAnswer, roundTimeout)
		case short.Err() != nil: // it was withdrawn, or the call has ended
		case err != nil || len(got) != 1:
			a.err = wire.Errorf(spec.CodeInternal, "server %q requested input for %s, and the client can't be asked: %v", t.s.b.opts.Name, t.s.req.Method, err)
		default:
			a.response, a.err = t.s.response(q.InputRequest, got[0])
		}
		select {
		case t.answers <- a:
		case <-ctx.Done():
		}
	})
}

// pass passes an answer to the server, under its key.
//
// Spec: tasks extension 2026-07-28, tasks/update.
func (t *taskRun) pass(ctx context.Context, a answered) error {
	t.asked[string(a.key)] = nil
	if t.open--; t.open == 0 {
		t.s.clock.Resume()
	}
	if a.err != nil || a.response == nil {
		return a.err
	}
	response := append(append(append([]byte{'{'}, a.key...), ':'), a.response...)
	got, done, err := t.send(ctx, spec.MethodTaskUpdate, wire.Edit{Name: "inputResponses", Value: append(response, '}')})
	defer done()
	switch {
	case err != nil:
		return err
	case got.Err != nil:
		t.s.b.log.Info("a server has refused the answer to a question of a task", "error", got.Err.Message)
	}
	return nil
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
