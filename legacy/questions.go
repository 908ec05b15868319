package legacy

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// holdTimeout bounds how long a question waits until it is clear whose it is.
	holdTimeout = 10 * time.Second
	// maxQuestions bounds the open questions of a session.
	maxQuestions = 256
)

// Causes with which a question ends without an answer for the server.
var errWithdrawn = errors.New("the server withdrew its question")

// inquire takes a question that a client may answer. It never blocks: some
// servers serve nothing until they are answered, and the reader must go on.
func (s *session) inquire(ctx context.Context, m *wire.Message, from *call) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed || len(s.questions) >= maxQuestions || s.questions[m.ID] != nil {
		cancel(nil)
		s.drop("question")
		return
	}
	asked := &question{m: *m, candidates: s.candidatesLocked(m, from)}
	s.questions[m.ID] = cancel
	// It ends when the question is answered or withdrawn, its call has ended, or
	// the session has; close waits.
	s.sending.Go(func() {
		defer s.answered(m.ID, cancel)
		s.resolve(ctx, asked)
	})
}

// A question is a request of the server on its way to a client.
type question struct {
	m          wire.Message
	candidates []*call // in flight when it came; it belongs to one of them, or to none
	fresh      bool    // answered with roots that the client gave for it
}

// candidatesLocked returns the calls that a question may belong to: the one on
// whose stream it came; else those that run and may be asked. roots/list is not
// about a call: any will do.
func (s *session) candidatesLocked(m *wire.Message, from *call) []*call {
	isRoots := m.Method == spec.MethodRootsList
	switch {
	case isRoots && s.rootsFor != nil:
		return []*call{s.rootsFor}
	case from != nil && from.mayBeAsked:
		return []*call{from}
	case from != nil && from.x != nil:
		return nil
	}
	var out []*call
	for _, c := range s.calls {
		if c.mayBeAsked && c.running() {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *call) int { return int(a.id - b.id) })
	if isRoots && len(out) > 1 {
		out = out[:1]
	}
	if len(out) > 0 && !s.link.wakes() && !isRoots {
		s.onAmbiguous() // its streams don't tell: from now on calls queue for lanes
	}
	return out
}

// resolve finds out whose question it is, has it answered, and tells the server.
func (s *session) resolve(ctx context.Context, q *question) {
	var frame []byte
	switch a, err := s.consult(ctx, q); {
	case context.Cause(ctx) != nil:
		return // withdrawn: nobody waits for an answer
	case err != nil:
		frame = wire.AppendError(nil, q.m.ID, refusalOf(err))
	case a.Err != nil:
		frame = wire.AppendError(nil, q.m.ID, a.Err)
	default:
		frame = wire.AppendResult(nil, q.m.ID, a.Result, nil)
	}
	ctx, cancel := context.WithTimeout(ctx, goodbyeTimeout)
	defer cancel()
	if err := s.link.send(ctx, frame); err != nil {
		s.log.Debug("answering question of server", "method", q.m.Method, "error", cause(err))
		return
	}
	if q.fresh {
		s.rootsSettled()
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

func (s *session) consult(ctx context.Context, q *question) (exchange.Answer, error) {
	c, err := s.attribute(ctx, q)
	if err != nil {
		return exchange.Answer{}, err
	}
	if q.m.Method == spec.MethodRootsList {
		return s.answerRoots(ctx, q, c)
	}
	if c == nil {
		return exchange.Answer{}, wire.Errorf(spec.CodeInvalidRequest,
			"%s: no call is under way that the question could belong to; mcpbridge can ask a client only while it runs one", q.m.Method)
	}
	if need := missingCapability(c.capabilities, q.m.Method, q.m.Params); need != nil {
		c.lack(need)
		return exchange.Answer{}, wire.Errorf(spec.CodeInvalidRequest, "%s: the client did not declare %s", q.m.Method, need)
	}
	return s.ask(ctx, c, q)
}

// attribute returns the call that a question belongs to, or nil if there is
// none. With several candidates it waits until one is left: the others have
// ended, or are waiting for their own clients' answers.
func (s *session) attribute(ctx context.Context, q *question) (*call, error) {
	timeout := time.NewTimer(holdTimeout)
	defer timeout.Stop()
	for {
		left, changed := s.stillRunning(q.candidates)
		switch len(left) {
		case 0:
			return nil, nil
		case 1:
			return left[0], nil
		}
		select {
		case <-changed:
		case <-timeout.C:
			s.drop("ambiguous question")
			s.log.Warn("question refused: it may belong to several calls", "method", q.m.Method, "calls", len(left))
			return nil, wire.Errorf(spec.CodeInternal, "%s: %d calls are under way and nothing tells which one asks; run them one at a time", q.m.Method, len(left))
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// stillRunning returns those of calls that can still be asked, and a channel
// that is closed when that may have changed.
func (s *session) stillRunning(calls []*call) ([]*call, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []*call
	for _, c := range calls {
		if len(calls) == 1 && s.calls[c.id] == c || s.calls[c.id] == c && c.running() {
			left = append(left, c)
		}
	}
	if s.changes == nil {
		s.changes = make(chan struct{})
	}
	return left, s.changes
}

// shifted wakes questions that wait for calls to end or to park.
func (s *session) shifted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shiftedLocked()
}

func (s *session) shiftedLocked() {
	if s.changes != nil {
		close(s.changes)
		s.changes = nil
	}
}

// ask puts a question to the caller of c and waits for the answer. Meanwhile the
// call is parked: its clock stands still, and its lane is free for others.
func (s *session) ask(ctx context.Context, c *call, q *question) (exchange.Answer, error) {
	ctx, leave, ok := c.park(ctx)
	if !ok {
		return exchange.Answer{}, errors.New("the call has ended")
	}
	defer leave()
	s.shifted()
	out := exchange.Question{Method: q.m.Method, Params: questionParams(c.capabilities, q.m.Params)}
	answers, err := c.x.Ask(ctx, []exchange.Question{out})
	if err != nil {
		return exchange.Answer{}, err
	}
	return s.legacyAnswer(q.m.Method, answers[0]), nil
}

// answered forgets a question.
func (s *session) answered(id wire.ID, cancel context.CancelCauseFunc) {
	s.mu.Lock()
	delete(s.questions, id)
	s.mu.Unlock()
	cancel(nil)
}

// withdraw takes back a question that the server has cancelled.
//
// Spec: 2025-11-25, basic/utilities/cancellation.
func (s *session) withdraw(m *wire.Message) {
	id, err := wire.ParseID(wire.Get(m.Params, "requestId"))
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.questions[id]; cancel != nil {
		cancel(errWithdrawn)
	}
}

// questionParams returns the params of a question as modern clients know them.
func questionParams(capabilities, params []byte) []byte {
	if params == nil {
		return nil
	}
	edits := []wire.Edit{{Name: "task"}, {Name: "elicitationId"}}
	if meta := wire.Get(params, "_meta"); wire.IsObject(meta) {
		meta = wire.AppendEdited(nil, meta, wire.Edit{Name: spec.MetaProgressToken})
		if emptyObject(meta) {
			meta = nil
		}
		edits = append(edits, wire.Edit{Name: "_meta", Value: meta})
	}
	if !declares(wire.Get(capabilities, "sampling"), "context") {
		edits = append(edits, wire.Edit{Name: "includeContext"})
	}
	return wire.AppendEdited(nil, params, edits...)
}

// missingCapability returns the client capability that a question needs and the
// client did not declare, as a capabilities object; nil if it may be asked.
//
// Spec: 2026-07-28, basic/patterns/mrtr, Server Requirements; client/elicitation,
// Capabilities.
func missingCapability(capabilities []byte, method string, params []byte) []byte {
	switch method {
	case spec.MethodElicit:
		group := wire.Get(capabilities, "elicitation")
		mode, _ := wire.GetString(params, "mode")
		switch {
		case mode == "url" && !declares(group, "url"):
			return []byte(`{"elicitation":{"url":{}}}`)
		case mode != "url" && (!wire.IsObject(group) || declares(group, "url") && !declares(group, "form")):
			return []byte(`{"elicitation":{"form":{}}}`)
		}
	case spec.MethodSample:
		group := wire.Get(capabilities, "sampling")
		switch {
		case !wire.IsObject(group):
			return []byte(`{"sampling":{}}`)
		case (declares(params, "tools") || declares(params, "toolChoice")) && !declares(group, "tools"):
			return []byte(`{"sampling":{"tools":{}}}`)
		}
	case spec.MethodRootsList:
		if !declares(capabilities, "roots") {
			return []byte(`{"roots":{}}`)
		}
	}
	return nil
}

// legacyAnswer returns a client's answer as the session's revision knows it.
// Before 2025-11-25 a sampled message had one block of content.
func (s *session) legacyAnswer(method string, a exchange.Answer) exchange.Answer {
	content := wire.Get(a.Result, "content")
	if method != spec.MethodSample || !wire.IsArray(content) || s.revision >= spec.Rev20251125 {
		return a
	}
	var blocks [][]byte
	for e := range wire.Elements(content) {
		blocks = append(blocks, e)
	}
	if len(blocks) != 1 {
		return exchange.Answer{Err: wire.Errorf(spec.CodeInternal,
			"the client's message has %d blocks of content, revision %s knows messages of one", len(blocks), s.revision)}
	}
	a.Result = wire.AppendEdited(nil, a.Result, wire.Edit{Name: "content", Value: blocks[0]})
	return a
}
