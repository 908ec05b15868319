package back

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// The tasks of 2025-11-25. The extension of 2026 is another thing.
const (
	methodTaskGet    = "tasks/get"
	methodTaskResult = "tasks/result"
	methodTaskCancel = "tasks/cancel"
	notifyTaskStatus = "notifications/tasks/status"
	metaRelatedTask  = spec.MetaPrefix + "related-task"
)

const (
	// Bounds of the time between two looks at a task, whatever its server says.
	defaultPoll = time.Second
	minPoll     = 50 * time.Millisecond
	maxPoll     = 15 * time.Second
	// quietPoll is how long a caller who wants progress hears nothing of a task
	// about which there is nothing new: clients give up after a silent minute.
	quietPoll = 10 * time.Second
	// progressStep is what progress grows by that the gateway makes up: so little
	// that a server's own stands above it.
	progressStep = 0.001
)

// A taskRun is one call that its server runs as a task.
type taskRun struct {
	s     *session
	c     *call
	id    string
	state taskState
	poke  chan struct{} // capacity 1: look now

	steps int       // of progress made up
	told  time.Time // when the caller last heard of the task
}

// A taskTable holds the tasks of a session that are under way. Safe for concurrent use.
type taskTable struct {
	mu   sync.Mutex // guards byID; a leaf
	byID map[string]*taskRun
}

func (t *taskTable) add(r *taskRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[r.id] = r
}

func (t *taskTable) remove(r *taskRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[r.id] == r {
		delete(t.byID, r.id)
	}
}

func (t *taskTable) find(id string) *taskRun {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// callOf returns the client's call that runs as a task, or nil.
func (t *taskTable) callOf(id string) *call {
	if r := t.find(id); r != nil {
		return r.c
	}
	return nil
}

// A taskState is what a server says of a task.
type taskState struct {
	status, message, updated string
	poll                     time.Duration
}

func readTask(text []byte) taskState {
	st := taskState{poll: defaultPoll}
	st.status, _ = wire.GetString(text, "status")
	st.message, _ = wire.GetString(text, "statusMessage")
	st.updated, _ = wire.GetString(text, "lastUpdatedAt")
	if ms, err := strconv.ParseFloat(string(wire.Get(text, "pollInterval")), 64); err == nil {
		ms = min(max(ms, 0), float64(maxPoll/time.Millisecond))
		st.poll = max(time.Duration(ms)*time.Millisecond, minPoll)
	}
	return st
}

// over reports whether the status is a final one.
func (st taskState) over() bool {
	return st.status == "completed" || st.status == "failed" || st.status == "cancelled"
}

// runTask serves a call of a tool that must be run as a task: it is answered like
// any other.
//
// Spec: 2025-11-25, basic/utilities/tasks.
func (s *session) runTask(ctx context.Context, req *mcp.Request, c *call) (upstream.Response, error) {
	c.hosts = true
	ctx, err := s.begin(ctx, c)
	if err != nil {
		return upstream.Response{}, err
	}
	defer c.Cancel(nil)
	result, err := s.perform(ctx, req, c)
	if err != nil && ctx.Err() != nil {
		s.inputs.noteCancelled(c)
	}
	c.Settle(upstream.Response{})
	c.end()
	s.Calls.Remove(&c.Call)
	s.inputs.changed.fire()
	var we *wire.Error
	if errors.As(err, &we) {
		return upstream.Response{Err: we}, nil
	}
	return upstream.Response{Result: result}, err
}

// perform has the task made and waits for its result. The error is the server's
// as a *wire.Error, a *upstream.Failure, or ctx's cause.
func (s *session) perform(ctx context.Context, req *mcp.Request, c *call) (json.RawMessage, error) {
	if err := s.prepare(ctx, c); err != nil {
		return nil, err
	}
	ttl := wire.AppendEdited(nil, nil, wire.Edit{Name: "ttl", Value: strconv.AppendInt(nil, s.opts.Timeouts.Max.Milliseconds(), 10)})
	params := wire.AppendEdited(nil, upstreamParams(nil, req.Params, c.upstreamToken()), wire.Edit{Name: "task", Value: ttl})
	created, err := s.requestFor(ctx, c, req.Method, params)
	if err != nil {
		return nil, err
	}
	r := s.adopt(c, wire.Get(created, "task"))
	if r == nil {
		return created, nil // it ran the tool at once
	}
	defer s.tasks.remove(r)
	c.name()
	c.freeLane()
	result, err := r.await(ctx)
	if f := upstream.AsFailure(err); f != nil {
		err = &upstream.Failure{Cause: f.Cause, Fate: upstream.MayHaveRun, Lost: f.Lost}
	}
	if err != nil && !r.state.over() {
		s.cancelTask(ctx, r.id)
	}
	return result, err
}

// adopt begins to look after a task, if there is one.
func (s *session) adopt(c *call, task []byte) *taskRun {
	id, ok := wire.GetString(task, "taskId")
	if !ok {
		return nil
	}
	r := &taskRun{s: s, c: c, id: id, state: readTask(task), poke: make(chan struct{}, 1)}
	s.tasks.add(r)
	return r
}

// taskStatus takes notifications/tasks/status: a reason to look.
func (s *session) taskStatus(m *wire.Message) {
	id, _ := wire.GetString(m.Params, "taskId")
	r := s.tasks.find(id)
	if r == nil {
		s.Drop("task status")
		return
	}
	select {
	case r.poke <- struct{}{}:
	default: // it will look anyway
	}
}

// cancelTask tells the server that nobody waits for a task any more.
func (s *session) cancelTask(ctx context.Context, id string) {
	if !mcp.Declares(wire.Get(s.caps.Raw, "tasks"), "cancel") {
		return
	}
	s.Later(ctx, func(ctx context.Context) {
		if _, err := s.Request(ctx, methodTaskCancel, taskParams(id)); err != nil {
			s.log.Debug("cancelling task", "error", cause(err))
		}
	})
}

func taskParams(id string) []byte {
	return wire.AppendEdited(nil, nil, wire.Edit{Name: "taskId", Value: wire.Quote(id)})
}

// A taskResult is what tasks/result answered.
type taskResult struct {
	result json.RawMessage
	err    error
}

// await looks at the task until it is over and returns its result. The server
// gives it, and asks what it has to ask, while tasks/result is under way.
func (r *taskRun) await(ctx context.Context) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	var fetching chan taskResult // nil unless under way
	defer func() {
		cancel()
		if fetching != nil {
			<-fetching
		}
	}()
	t := time.NewTimer(0)
	defer t.Stop()
	early := false // it answers before the end: no use to ask sooner
	for {
		if fetching == nil && (r.state.over() || r.state.status == "input_required" && !early) {
			if r.state.status == "cancelled" {
				return nil, r.cancelled()
			}
			fetching = r.fetch(ctx)
		}
		t.Reset(r.state.poll)
		select {
		case got := <-fetching:
			fetching = nil
			done, err := r.fetched(ctx, got)
			if done || err != nil {
				return got.result, err
			}
			early = true
			continue
		case <-t.C:
		case <-r.poke:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if err := r.look(ctx); err != nil {
			return nil, err
		}
	}
}

// fetch calls tasks/result. What it starts ends with the answer, or ctx; await
// waits for it.
func (r *taskRun) fetch(ctx context.Context) chan taskResult {
	got := make(chan taskResult, 1)
	go func() {
		result, err := r.s.requestFor(ctx, r.c, methodTaskResult, taskParams(r.id))
		got <- taskResult{withoutTask(result), err}
	}()
	return got
}

// fetched reports whether the answer to tasks/result is the call's. Before the
// end of the task an error is not, though some servers give one.
func (r *taskRun) fetched(ctx context.Context, got taskResult) (bool, error) {
	f := upstream.AsFailure(got.err)
	switch {
	case got.err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case f != nil && f.Lost:
		return false, f
	case r.state.over() && f == nil:
		return false, got.err
	}
	if err := r.look(ctx); err != nil {
		return false, err
	}
	if r.state.over() && f == nil {
		return false, got.err
	}
	return false, nil
}

// look asks how the task is. A server that can't be reached is asked again: the
// call's time bounds it. A caller who is being asked is not told of progress.
func (r *taskRun) look(ctx context.Context) error {
	if r.c.beingAsked() {
		return nil
	}
	text, err := r.s.requestFor(ctx, r.c, methodTaskGet, taskParams(r.id))
	var we *wire.Error
	f := upstream.AsFailure(err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &we):
		return wire.Errorf(spec.CodeInternal, "server %q does not know how the task is that runs the tool: %s; it may have taken effect", r.s.opts.Name, we.Message)
	case f != nil && f.Lost:
		return err
	case err != nil:
		r.s.log.Debug("looking at task", "error", cause(err))
		r.state.poll = min(2*r.state.poll, maxPoll)
		return nil
	}
	before := r.state
	r.state = readTask(text)
	r.c.clock.Restart()
	news := before.status != r.state.status || before.message != r.state.message || before.updated != r.state.updated
	if news || time.Since(r.told) >= quietPoll {
		r.tell()
	}
	return nil
}

// tell makes progress of a status.
func (r *taskRun) tell() {
	c := r.c
	if c.token() == nil {
		return
	}
	r.told = time.Now()
	r.steps++
	value := strconv.AppendFloat(nil, float64(r.steps)*progressStep, 'f', 3, 64)
	if !c.advance(value) {
		return // the server tells of its progress itself
	}
	params := wire.AppendEdited(nil, nil,
		wire.Edit{Name: spec.MetaProgressToken, Value: c.token()},
		wire.Edit{Name: "progress", Value: value})
	if r.state.message != "" {
		params = wire.AppendEdited(nil, params, wire.Edit{Name: "message", Value: wire.Quote(r.state.message)})
	}
	if c.note(spec.NotifyProgress, params) {
		c.drainSoon()
	}
}

func (r *taskRun) cancelled() error {
	why := r.state.message
	if why == "" {
		why = "it gave no reason"
	}
	return wire.Errorf(spec.CodeInternal, "server %q cancelled the task that ran the tool: %s", r.s.opts.Name, upstream.Shorten(why))
}

// withoutTask returns a result without the name of its task, which is nothing to
// the client.
func withoutTask(result []byte) []byte {
	meta := wire.Get(result, "_meta")
	if wire.Get(meta, metaRelatedTask) == nil {
		return result
	}
	meta = wire.AppendEdited(nil, meta, wire.Edit{Name: metaRelatedTask})
	if bytes.Equal(meta, []byte("{}")) {
		meta = nil
	}
	return wire.AppendEdited(nil, result, wire.Edit{Name: "_meta", Value: meta})
}
