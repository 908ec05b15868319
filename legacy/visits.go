package legacy

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// visitTimeout bounds the wait for the server's word that a visit is done,
	// after the user said so.
	visitTimeout = 45 * time.Second
	// maxVisits bounds how often one call can ask for visits.
	maxVisits = 8
)

// errVisited says that a call is to be sent anew: its user went where the server
// wanted.
var errVisited = errors.New("the server wanted a URL visited first")

// A visit is one URL that a user must go to before a call can succeed.
type visit struct {
	id     string // elicitationId, or empty
	params []byte // of the question
}

// visits reads what a -32042 demands.
//
// Spec: 2025-11-25, client/elicitation, URL Elicitation Required Error.
func visits(e *wire.Error) []visit {
	var out []visit
	for item := range wire.Elements(wire.Get(e.Data, "elicitations")) {
		if !wire.IsObject(item) {
			continue
		}
		id, _ := wire.GetString(item, "elicitationId")
		out = append(out, visit{id: id, params: wire.AppendEdited(nil, item,
			wire.Edit{Name: "elicitationId"}, wire.Edit{Name: "mode", Value: []byte(`"url"`)})})
	}
	return out
}

// A visited is a visit of which the server will say that it is done. Several calls
// may wait for one.
type visited struct {
	done    chan struct{} // closed when it is
	waiters int
}

// visit has the caller's user go where a -32042 demands. It returns errVisited once
// the call may be sent anew. The call that failed is over: nothing waits upstream.
func (s *session) visit(ctx context.Context, req *exchange.Request, x exchange.Exchange, e *wire.Error) error {
	need := []byte(`{"elicitation":{"url":{}}}`)
	all := visits(e)
	if !exchange.Declares(wire.Get(req.Profile.Capabilities, "elicitation"), "url") {
		return lacking(need, e.Message)
	}
	if len(all) == 0 {
		return upstreamError(req, e, true)
	}
	done := s.expectVisits(all)
	defer s.forgetVisits(all)
	questions := make([]exchange.Question, len(all))
	for i, v := range all {
		questions[i] = exchange.Question{Method: spec.MethodElicit, Params: v.params}
	}
	answers, err := x.Ask(ctx, questions)
	if err != nil {
		return err
	}
	for _, a := range answers {
		if action, _ := wire.GetString(a.Result, "action"); action != "accept" {
			return wire.Errorf(spec.CodeInternal, "server %q: %s; the user did not agree to it", s.opts.Name, e.Message)
		}
	}
	return s.awaitVisits(ctx, done)
}

// expectVisits begins to watch for the server's word. It may come before the
// client's.
func (s *session) expectVisits(all []visit) []*visited {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*visited
	for _, v := range all {
		if v.id == "" {
			continue
		}
		w := s.visits[v.id]
		if w == nil {
			w = &visited{done: make(chan struct{})}
			s.visits[v.id] = w
		}
		w.waiters++
		out = append(out, w)
	}
	return out
}

func (s *session) forgetVisits(all []visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range all {
		if w := s.visits[v.id]; w != nil {
			if w.waiters--; w.waiters == 0 {
				delete(s.visits, v.id)
			}
		}
	}
}

// visited takes notifications/elicitation/complete.
func (s *session) visited(m *wire.Message) {
	id, _ := wire.GetString(m.Params, "elicitationId")
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.visits[id]
	if w == nil {
		s.drop("unknown visit")
		return
	}
	select {
	case <-w.done: // it says so again
	default:
		close(w.done)
	}
}

// awaitVisits returns errVisited when the server has said that all is done. A
// server that says nothing for long will say whether it is content.
func (s *session) awaitVisits(ctx context.Context, all []*visited) error {
	t := time.NewTimer(visitTimeout)
	defer t.Stop()
	for _, w := range all {
		select {
		case <-w.done:
		case <-s.gone:
			return errVisited
		case <-t.C:
			return errVisited
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return errVisited
}

// lacking is what a client is told whose request failed because it can't be
// asked something.
//
// Spec: 2026-07-28, basic/index, MissingRequiredClientCapabilityError.
func lacking(need []byte, text string) error {
	data := wire.AppendEdited(nil, nil, wire.Edit{Name: "requiredCapabilities", Value: need})
	e := wire.Errorf(spec.CodeMissingCapability, "the client lacks a capability that the server needs: %s", text)
	e.Data = data
	return &exchange.Refusal{Err: e}
}

// failedText returns what a tool's result says if it is an error, and whether it
// is one.
func failedText(result []byte) (string, bool) {
	if string(wire.Get(result, "isError")) != "true" {
		return "", false
	}
	var text bytes.Buffer
	for block := range wire.Elements(wire.Get(result, "content")) {
		t, _ := wire.GetString(block, "text")
		text.WriteString(t)
	}
	return shorten(text.String()), true
}
