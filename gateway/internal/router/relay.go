package router

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/visit"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// OpenRelay opens a relay for a client's session if client and server are both legacy, and
// writes one line to the log. Cached results, and the other handlers between front and back,
// do not apply to a relayed session.
func (s *server) OpenRelay(ctx context.Context, req *mcp.Request, m *wire.Message, h mcp.RelayClient) (mcp.Relay, []byte, error) {
	linker, ok := s.back.(mcp.Relayer)
	if !ok || s.shared {
		return nil, nil, nil
	}
	begin := s.log.now()
	if err := s.access.OpenRelay(req, m); err != nil {
		s.log.report(ctx, req, begin, err)
		return nil, nil, s.ForClient(err)
	}
	session := s.access.Session(req)
	l, answer, err := linker.OpenRelay(ctx, req, m, session.Client(h))
	if l == nil && answer == nil && (err == nil || s.wantsLogin(err)) {
		return nil, nil, nil // the front then calls Describe
	}
	s.log.report(ctx, req, begin, err)
	if l == nil {
		return nil, s.cleanRefusal(answer), s.ForClient(err)
	}
	return &loggedRelay{session.Relay(s.owners.Relay(l, req.Share)), s, relayOwner{s.log.callerOf(req), req.Revision, req.ClientInfo}, req}, answer, nil
}

// wantsLogin reports whether a request was not sent since its principal has no login at the
// server.
func (s *server) wantsLogin(err error) bool {
	return s.userLogins != nil && errors.As(err, new(*mcp.LoginError))
}

// cleanRefusal removes secrets from an error response to initialize.
func (s *server) cleanRefusal(answer []byte) []byte {
	if m, err := wire.Parse(answer, wire.Options{}); err == nil && m.Error != nil {
		return s.g.now().errors.CleanAnswer(answer, m.Error)
	}
	return answer
}

// A loggedRelay is a Relay whose calls are counted and logged.
type loggedRelay struct {
	mcp.Relay
	s      *server
	by     relayOwner
	opened *mcp.Request // that opened it
}

// A relayOwner is the client whose session is relayed.
type relayOwner struct {
	requester
	revision spec.Revision
	info     []byte
}

// Call implements [mcp.OpenRelay].
func (l *loggedRelay) Call(m *wire.Message, o mcp.RelayedCall) {
	c := &loggedCall{RelayedCall: o, relay: l, method: m.Method, begin: l.s.log.now(), served: l.s.log.served(m.Method, m.Params, spec.Legacy), trace: l.observe(m, o)}
	c.served.Client = l.by.client
	if l.s.log.enabled(context.Background(), slog.LevelInfo) {
		c.subject = l.s.log.names.Subject(m.Method, m.Params)
	}
	l.Relay.Call(m, c)
}

type loggedCall struct {
	mcp.RelayedCall
	relay           *loggedRelay
	method, subject string
	begin           time.Duration // of the log
	served          mcp.Served
	trace           *trace.Request // nil while nobody observes
}

// Answer implements [mcp.RelayedCall].
func (c *loggedCall) Answer(text []byte, failed error) {
	var we *wire.Error
	s := c.relay.s
	if s.wantsLogin(failed) {
		id, _ := wire.ParseID(wire.Get(text, "id")) // valid: it is made here
		text = wire.AppendError(nil, id, visit.Error(s.name, s.userLogins, c.relay.opened))
	} else if failed != nil && errors.As(failed, &we) {
		text = c.relay.s.g.now().errors.CleanAnswer(text, we)
	}
	c.trace.Sent(text)
	c.RelayedCall.Answer(text, failed)
	c.report(failed)
}

// Lost implements [mcp.RelayedCall].
func (c *loggedCall) Lost(err error) {
	c.RelayedCall.Lost(c.relay.s.ForClient(err))
	c.report(err)
}

func (c *loggedCall) report(err error) {
	s := c.relay.s
	took, result := s.log.count(context.Background(), &c.served, c.begin, err, c.trace)
	c.trace.End(err)
	s.log.writeLine(context.Background(), requestLine{lineKind: lineKind{c.method, spec.Legacy}, subject: c.subject, requester: c.relay.by.requester}, took, result, err)
}
