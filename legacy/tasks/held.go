package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// askTime is how long a server that wants input may take to ask for it.
	askTime = time.Second
	// gatherTime is how long a question waits for others of the same burst.
	gatherTime = 20 * time.Millisecond
	// questionSize is the memory of a question without its params, in bytes.
	questionSize = 1 << 10
	// cancelTime is how long tasks/cancel may take before the open questions are answered.
	cancelTime = time.Second
	// goodbyeTime bounds the last request about a task whose time is up.
	goodbyeTime = 10 * time.Second
)

// Why questions of a task are answered without its client.
var (
	errExpired   = errors.New("the task's time is up")
	errCancelled = errors.New("the client has cancelled the task")
	errOver      = errors.New("the task is over")
)

// A Session is a session with the server of a task, which is kept open for it.
type Session interface {
	// Begin says which task the session is of. Hold calls it before the task can be found, or can end.
	Begin(h *Held)
	// Request sends a request about the task; see [Call].
	Request(ctx context.Context, method string, params []byte) (json.RawMessage, error)
	// Cancels reports whether the server has tasks/cancel.
	Cancels() bool
	// Release lets the session go. It is called once.
	Release()
}

// A Maker is what all requests about a task have of the one that has made it.
type Maker struct {
	Principal mcp.Principal
	Identity  *mcp.Identity
	Profile   mcp.Profile
	Share     mcp.Share
	Memory    mcp.Memory
}

// A Held is a task that a client of 2026-07-28 holds. It implements [upstream.TaskSource]. Safe for
// concurrent use.
type Held struct {
	*task
	of        *Holding
	maker     *Maker
	open      func(ctx context.Context, h *Held) (Session, error) // opens another session
	table     *upstream.Task
	form      form // its message is guarded by task.mu
	questions questions

	who atomic.Pointer[mcp.Identity] // of the last request about the task

	// Guarded by task.mu.
	session Session
	left    bool // Leave was called
	late    bool // its time was up then, and it was not over
}

// Hold has a client hold the task that a server has created in a session, whose response is
// created, for life at most. open opens another session once that one is lost. It returns nil if it is
// too late.
func (of *Holding) Hold(in *upstream.Task, at Session, created []byte, maker *Maker, life time.Duration, open func(context.Context, *Held) (Session, error)) *Held {
	h := &Held{of: of, maker: maker, open: open, table: in, session: at}
	life = LifeOf(wire.Get(created, "task"), life)
	h.form = form{id: in.ID, made: time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), ttl: life.Milliseconds()}
	h.questions.changed = in.Notice
	h.task = newTask(at, created, in.Refresh)
	h.Identify(maker.Identity)
	text := h.form.append(nil, h.state.text, upstream.TaskWorking, nil)
	if meta := wire.Without(wire.Get(created, "_meta"), spec.MetaRelatedTask); meta != nil {
		text = wire.AppendEdited(nil, text, wire.Edit{Name: "_meta", Value: meta})
	}
	first := upstream.TaskState{Status: upstream.TaskWorking, Text: bytes.Clone(text), // without room for more
		Pause: h.state.pause}
	at.Begin(h)
	if !in.Hold(h, first, life) {
		h.close()
		return nil
	}
	return h
}

// Created returns the result that tells the client of the task.
//
// Spec: tasks extension 2026-07-28, Creating a Task.
func (h *Held) Created() []byte {
	s := h.table.Last()
	return Body(&s, spec.ResultTask)
}

// ID returns the id of the task at its server.
func (h *Held) ID() string { return h.id }

// Task returns the task as its client holds it.
func (h *Held) Task() *upstream.Task { return h.table }

// Notice says that the task's state has changed.
func (h *Held) Notice() { h.table.Notice() }

// Progress notes the message of a server's progress, which stands in for a statusMessage.
func (h *Held) Progress(message string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if message != "" {
		h.form.message = message
	}
}

// Identify notes who has sent a request about the task: it is looked at with that credential.
func (h *Held) Identify(who *mcp.Identity) { h.who.Store(who) }

// Identity returns what Identify has noted.
func (h *Held) Identity() *mcp.Identity { return h.who.Load() }

// Ask passes an input request of the server to the client, and waits for the response, however
// long. When ctx ends, it is taken back. It is refused if there is no memory for it.
func (h *Held) Ask(ctx context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
	room, err := mcp.Reserve(h.maker.Memory, h.maker.Share, questionSize+len(q.Params))
	if err != nil {
		return mcp.InputResponse{}, err
	}
	defer room.Release()
	return h.questions.ask(ctx, q)
}

// Capabilities returns what the client declared.
func (h *Held) Capabilities() json.RawMessage { return h.maker.Profile.Capabilities }

// Refuse notes that a question needs a capability that the client did not declare.
func (h *Held) Refuse(need []byte) { h.questions.refuse(need) }

// Update passes the client's responses to the server. Those to no open question have no effect.
//
// Spec: tasks extension 2026-07-28, tasks/update.
func (h *Held) Update(responses []byte) {
	for k, v := range wire.Members(responses) {
		h.questions.answer(k.String(), v)
	}
}

// Cancel asks the server to cancel the task, if it can; what becomes of it is the server's. The
// error says that the server could not be asked. Open questions are answered afterwards: a tool that
// goes on with such an answer would end before it is cancelled. A server that answers late could
// wait for the tool.
//
// Spec: tasks extension 2026-07-28, tasks/cancel.
func (h *Held) Cancel(ctx context.Context) (upstream.TaskState, error) {
	over := h.isOver() // before the answers, with which the server may end it
	defer h.questions.cancel(errCancelled)
	h.mu.Lock()
	at := h.session
	h.mu.Unlock()
	if over || !at.Cancels() {
		return h.table.Last(), nil
	}
	defer h.table.Notice()
	late := time.AfterFunc(cancelTime, func() { h.questions.cancel(errCancelled) })
	defer late.Stop()
	_, err := at.Request(ctx, MethodCancel, IDParams(h.id))
	if we := (*wire.Error)(nil); errors.As(err, &we) {
		h.of.Log.Debug("a server has not cancelled a task", "error", we.Message)
		err = nil
	}
	return h.table.Last(), err
}

// Look implements [upstream.TaskSource]. If the session is lost, the task is looked for in another
// one, once: some servers keep their tasks elsewhere.
func (h *Held) Look(ctx context.Context) (upstream.TaskState, error) {
	f, err := h.look(ctx)
	if failure := upstream.AsFailure(err); failure != nil && failure.Lost {
		f, err = h.lookElsewhere(ctx, failure)
	}
	if err == nil && f.status == upstream.TaskInputRequired && h.awaitQuestion(ctx) {
		f, err = h.look(ctx) // tasks/result was answered meanwhile
	}
	switch {
	case isGone(err):
		return h.stateOf(h.lost(gone(h.of.Server, err))), nil
	case err != nil:
		return upstream.TaskState{}, err
	}
	return h.stateOf(f), nil
}

// lookElsewhere looks for the task in another session. If nobody needs that any more once it is open, it
// is let go.
func (h *Held) lookElsewhere(ctx context.Context, lost error) (finding, error) {
	at, err := h.open(ctx, h)
	if err != nil {
		return finding{}, err
	}
	h.mu.Lock()
	former, left := h.session, h.left
	if !left {
		h.session = at
	}
	h.mu.Unlock()
	if left { // and with it the former session
		h.goodbye(at)
		at.Release()
		return finding{}, errClosed
	}
	h.move(at)
	former.Release()
	f, err := h.look(ctx)
	if isGone(err) {
		return h.lost(wire.Errorf(spec.CodeInternal,
			"server %q has lost the session in which the task ran (%v), and does not know the task any more; it may have taken effect: check before calling the tool again", h.of.Server, transport.Cause(lost))), nil
	}
	return f, err
}

// lost returns a task that its server has no more: it has failed with an error of the gateway's own.
func (h *Held) lost(why *wire.Error) finding {
	h.mu.Lock()
	defer h.mu.Unlock()
	return finding{state: state{status: upstream.TaskFailed, text: h.state.text}, err: why}
}

// awaitQuestion waits for a question of a server that wants input. It reports whether tasks/result
// was answered instead.
func (h *Held) awaitQuestion(ctx context.Context) (answered bool) {
	h.mu.Lock()
	f := h.fetched
	h.mu.Unlock()
	if f == nil {
		return false
	}
	asked := h.questions.awaited()
	late := wake.Due()
	if left := askTime - time.Since(f.began); left > 0 {
		t := time.NewTimer(left)
		defer t.Stop()
		late = t.C
	}
	for h.questions.text() == nil {
		select {
		case <-asked:
			if h.questions.text() != nil { // and it is not one that was answered since
				_ = wake.Wait(ctx, gatherTime) // questions that come together are told together
			}
		case <-f.done:
			return true
		case <-late:
			return wake.Closed(f.done)
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// stateOf returns what is told of a finding. A client answers questions whatever the server's word
// is, and waits while there are none.
func (h *Held) stateOf(f finding) upstream.TaskState {
	s := upstream.TaskState{Status: f.status, Pause: f.pause}
	asked := h.questions.text()
	switch lacked := h.questions.lacked(); {
	case f.err != nil:
		we, _ := errors.AsType[*wire.Error](f.err)
		s.Status, s.Err = upstream.TaskFailed, h.of.failed(we, lacked)
	case f.status == upstream.TaskCompleted:
		result, failed := h.of.came(f.result, lacked)
		if s.Result = result; failed != nil {
			s.Status, s.Result, s.Err = upstream.TaskFailed, nil, failed
		}
	case f.status == upstream.TaskCancelled:
	case asked != nil:
		s.Status = upstream.TaskInputRequired
	default:
		s.Status = upstream.TaskWorking
	}
	if s.IsOver() {
		h.questions.end(errOver)
		asked = nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.status = s.Status
	s.Text = h.form.append(nil, f.text, s.Status, asked)
	return s
}

// Leave implements [upstream.TaskSource]. A live task whose time is up is cancelled.
func (h *Held) Leave(expired bool) {
	over := h.isOver()
	h.questions.end(errExpired)
	h.mu.Lock()
	at := h.session
	h.left, h.late = true, expired && !over
	h.mu.Unlock()
	h.goodbye(at)
	h.close()
	at.Release()
}

// goodbye cancels a live task whose time is up, in a session. It is called once the task is left.
func (h *Held) goodbye(at Session) {
	if !h.late || !at.Cancels() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTime)
	defer cancel()
	if _, err := at.Request(ctx, MethodCancel, IDParams(h.id)); err != nil {
		h.of.Log.Debug("cancelling a task whose time is up", "error", transport.Cause(err))
	}
}
