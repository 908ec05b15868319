package back

import (
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxQuestions bounds the open questions of a session. Whoever lets calls park
// bounds them in earnest; this is against servers that ask without end.
const maxQuestions = 16 << 10

// errWithdrawn is the cause with which a question ends that the server took back.
var errWithdrawn = errors.New("the server withdrew its question")

// A question is a request of the server on its way to a client.
type question struct {
	m      wire.Message
	cancel context.CancelCauseFunc
	came   time.Time
	task   string // the task it names; empty if none

	candidates []*call // it belongs to one of them, or to none
	told       bool    // something tells whose it is
	doubtful   bool    // it may be that of a call that was cancelled a moment ago
	news       bool    // it was provoked by roots.tell
	counted    bool    // it is about roots and counted in roots.open
	fresh      bool    // answered with roots that the client gave for it
	waits      bool    // the server is taken to do nothing else for the call meanwhile
	parked     bool    // a call was parked for it

	// Guarded by session.mu.
	asked *call // whose caller is being asked; nil before and after
}

// inquire takes a question that a client may answer. It never blocks: some
// servers serve nothing until they are answered, and the reader must go on.
//
// Whose it is is decided here where it can be: with the next message, more calls
// may run.
func (s *session) inquire(ctx context.Context, m *wire.Message, from *call) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	q := &question{m: *m, cancel: cancel, came: time.Now()}
	q.task, _ = wire.GetString(wire.Get(wire.Get(m.Params, "_meta"), metaRelatedTask), "taskId")
	if s.admit(ctx, q, from) {
		return
	}
	cancel(nil)
	s.drop("question")
	s.sendLater(ctx, wire.AppendError(nil, m.ID, wire.Errorf(spec.CodeInternal, "%s: too many questions are open", m.Method)))
}

// admit takes a question in, if there is room for it.
func (s *session) admit(ctx context.Context, q *question, from *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.questions) >= maxQuestions || s.questions[q.m.ID] != nil {
		return false
	}
	s.questions[q.m.ID] = q
	if q.m.Method == spec.MethodRootsList {
		s.roots.begin()
	}
	s.nominateLocked(q, from)
	var c *call
	if len(q.candidates) == 1 && !q.doubtful {
		c = q.candidates[0]
		s.assignLocked(q, c)
	}
	// It ends when the question is answered or withdrawn, its call has ended, or
	// the session has; close waits.
	return s.start(func() {
		defer s.answered(q)
		s.resolve(ctx, q, c)
	})
}

// resolve has a question answered, by the caller of c if that is known already,
// and tells the server.
func (s *session) resolve(ctx context.Context, q *question, c *call) {
	var frame []byte
	switch a, err := s.consult(ctx, q, c); {
	case context.Cause(ctx) != nil:
		return // withdrawn: nobody waits for an answer
	case err != nil:
		frame = wire.AppendError(nil, q.m.ID, refusalOf(err))
	case a.Err != nil:
		frame = wire.AppendError(nil, q.m.ID, a.Err)
	default:
		frame = wire.AppendResult(nil, q.m.ID, q.related(a.Result), nil)
	}
	s.freeID(q) // a server may use it again once it is answered
	ctx, cancel := context.WithTimeout(ctx, goodbyeTimeout)
	defer cancel()
	if err := s.link.send(ctx, frame); err != nil {
		s.log.Debug("answering question of server", "method", q.m.Method, "error", cause(err))
		return
	}
	if q.fresh {
		s.roots.settled()
	}
}

// refusalOf is what a server is told whose question was not put to a client.
func refusalOf(err error) *wire.Error {
	var we *wire.Error
	if errors.As(err, &we) {
		return we
	}
	return wire.Errorf(spec.CodeInternal, "no answer from the client: %v", err)
}

func (s *session) consult(ctx context.Context, q *question, c *call) (mcp.InputResponse, error) {
	if c == nil && q.m.Method != spec.MethodRootsList {
		if err := s.unaskable(q); err != nil {
			return mcp.InputResponse{}, err
		}
		var err error
		if c, err = s.attribute(ctx, q); err != nil {
			return mcp.InputResponse{}, err
		}
	}
	if q.m.Method == spec.MethodRootsList {
		return s.answerRoots(ctx, q, c)
	}
	if need := mcp.MissingCapability(c.capabilities(), q.m.Method, q.m.Params); need != nil {
		c.lack(need)
		return mcp.InputResponse{}, undeclared(q, need)
	}
	return s.ask(ctx, c, q)
}

func undeclared(q *question, need []byte) error {
	return wire.Errorf(spec.CodeInvalidRequest, "%s: the client did not declare %s", q.m.Method, need)
}

// ask puts a question to the caller of c, which is parked, and waits for the
// answer. Meanwhile the call's lane is free for others.
func (s *session) ask(ctx context.Context, c *call, q *question) (mcp.InputResponse, error) {
	if !q.parked {
		return mcp.InputResponse{}, errors.New("the call has ended")
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	unlink := context.AfterFunc(c.lifetime(), cancel)
	defer unlink()
	stop := c.breathe(q)
	out := mcp.InputRequest{Method: q.m.Method, Params: questionParams(c.capabilities(), q.m.Params)}
	answers, err := c.caller.RequestInput(asking, []mcp.InputRequest{out})
	c.asks.Done()
	stop()
	s.unpark(q)
	if err != nil {
		return mcp.InputResponse{}, err
	}
	return s.legacyAnswer(q.m.Method, answers[0]), nil
}

// answerRoots answers roots/list: from the config, from the caller of c, or,
// where there is no call to ask, with what the only client has answered last, else
// nothing. That is provisional; see roots.refresh.
func (s *session) answerRoots(ctx context.Context, q *question, c *call) (mcp.InputResponse, error) {
	if s.opts.Roots != nil {
		return mcp.InputResponse{Result: rootsResult(s.opts.Roots)}, nil
	}
	switch {
	case c == nil:
		return mcp.InputResponse{Result: s.roots.provisional()}, nil
	case !c.mayBeAsked: // others' roots are taken back, and its own not known
		s.roots.give(nil)
		q.fresh = true
		return mcp.InputResponse{Result: s.roots.provisional()}, nil
	case mcp.MissingCapability(c.capabilities(), q.m.Method, nil) != nil:
		s.roots.give(c) // which are none
		q.fresh = true
		return mcp.InputResponse{Result: s.roots.provisional()}, nil
	}
	a, err := s.ask(ctx, c, q)
	if err == nil && a.Err == nil {
		s.roots.give(c)
		q.fresh = true
		s.roots.profile.put(s.roots, a.Result)
	}
	return a, err
}

// freeID lets another question have the id of q.
func (s *session) freeID(q *question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.questions, q.m.ID)
}

// answered forgets a question.
func (s *session) answered(q *question) {
	q.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unparkLocked(q)
	if s.questions[q.m.ID] == q {
		delete(s.questions, q.m.ID)
	}
	if q.m.Method == spec.MethodRootsList {
		s.roots.end(q)
	}
	s.calls.change()
}

// withdraw takes back a question that the server has cancelled. Its call is at
// work again from the next message on.
//
// Spec: 2025-11-25, basic/utilities/cancellation.
func (s *session) withdraw(m *wire.Message) {
	id, err := wire.ParseID(wire.Get(m.Params, "requestId"))
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.questions[id]; q != nil {
		s.unparkLocked(q)
		q.cancel(errWithdrawn)
	}
}

// related returns an answer that names the task of its question.
//
// Spec: 2025-11-25, basic/utilities/tasks, Related Task Metadata.
func (q *question) related(result []byte) []byte {
	if q.task == "" {
		return result
	}
	task := wire.AppendEdited(nil, nil, wire.Edit{Name: "taskId", Value: wire.Quote(q.task)})
	meta := wire.AppendEdited(nil, wire.Get(result, "_meta"), wire.Edit{Name: metaRelatedTask, Value: task})
	return wire.AppendEdited(nil, result, wire.Edit{Name: "_meta", Value: meta})
}

// questionParams returns the params of a question as modern clients know them.
func questionParams(capabilities, params []byte) []byte {
	if params == nil {
		return nil
	}
	edits := []wire.Edit{{Name: "task"}, {Name: "elicitationId"}}
	if meta := wire.Get(params, "_meta"); wire.IsObject(meta) {
		meta = wire.AppendEdited(nil, meta, wire.Edit{Name: spec.MetaProgressToken}, wire.Edit{Name: metaRelatedTask})
		if emptyObject(meta) {
			meta = nil
		}
		edits = append(edits, wire.Edit{Name: "_meta", Value: meta})
	}
	if !mcp.Declares(wire.Get(capabilities, "sampling"), "context") {
		edits = append(edits, wire.Edit{Name: "includeContext"})
	}
	return wire.AppendEdited(nil, params, edits...)
}

// legacyAnswer returns a client's answer as the session's revision knows it.
// Before 2025-11-25 a sampled message had one block of content.
func (s *session) legacyAnswer(method string, a mcp.InputResponse) mcp.InputResponse {
	content := wire.Get(a.Result, "content")
	if method != spec.MethodSample || !wire.IsArray(content) || s.revision >= spec.Rev20251125 {
		return a
	}
	var blocks [][]byte
	for e := range wire.Elements(content) {
		blocks = append(blocks, e)
	}
	if len(blocks) != 1 {
		return mcp.InputResponse{Err: wire.Errorf(spec.CodeInternal,
			"the client's message has %d blocks of content, revision %s knows messages of one", len(blocks), s.revision)}
	}
	a.Result = wire.AppendEdited(nil, a.Result, wire.Edit{Name: "content", Value: blocks[0]})
	return a
}
