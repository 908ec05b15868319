package gateway

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Link links a session with the server if both are legacy, and tells of it in one
// line. What stands between the front and the back for single requests, the results
// that are kept above all, has no part in such a session.
func (s *server) Link(ctx context.Context, req *mcp.Request, m *wire.Message, h mcp.Hearer) (mcp.Link, []byte, error) {
	linker, ok := s.back.(mcp.Linker)
	if !ok || s.shared {
		return nil, nil, nil
	}
	begin := time.Now()
	l, answer, err := linker.Link(ctx, req, m, h)
	if l == nil && answer == nil && err == nil {
		return nil, nil, nil // it is described instead
	}
	s.log.report(ctx, req, begin, err)
	if l == nil {
		return nil, s.cleanRefusal(answer), s.g.errors.told(err)
	}
	return &linked{s.owners.Link(l, req.Share), s, callerOf(req)}, answer, nil
}

// cleanRefusal returns an answer to initialize without secrets.
func (s *server) cleanRefusal(answer []byte) []byte {
	if m, err := wire.Parse(answer, wire.Options{}); err == nil && m.Error != nil {
		return s.g.errors.cleanAnswer(answer, m.Error)
	}
	return answer
}

// A linked is a Link whose calls are counted and told of.
type linked struct {
	mcp.Link
	s   *server
	who caller
}

// Call implements [mcp.Link].
func (l *linked) Call(m *wire.Message, o mcp.Outcome) {
	c := &linkedCall{Outcome: o, l: l, method: m.Method, begin: time.Now()}
	if l.s.log.enabled(context.Background(), slog.LevelInfo) {
		c.subject = subject(m.Method, m.Params)
	}
	l.Link.Call(m, c)
}

type linkedCall struct {
	mcp.Outcome
	l               *linked
	method, subject string
	begin           time.Time
}

// Answer implements [mcp.Outcome].
func (c *linkedCall) Answer(text []byte, failed error) {
	var we *wire.Error
	if failed != nil && errors.As(failed, &we) {
		text = c.l.s.g.errors.cleanAnswer(text, we)
	}
	c.Outcome.Answer(text, failed)
	c.report(failed)
}

// Lost implements [mcp.Outcome].
func (c *linkedCall) Lost(err error) {
	c.Outcome.Lost(c.l.s.g.errors.told(err))
	c.report(err)
}

func (c *linkedCall) report(err error) {
	s := c.l.s
	took, result := s.log.count(context.Background(), c.method, spec.Legacy, c.begin, err)
	s.log.writeLine(context.Background(), requestLine{lineKind{c.method, spec.Legacy}, c.subject, c.l.who}, took, result, err)
}
