package relay

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// ListenChanged implements [link.Sink]. Whether a stream is open, and what was missed, the
// client finds out by itself.
func (s *Session) ListenChanged(open, missed bool) {}

// Receive implements [link.Sink].
func (s *Session) Receive(ctx context.Context, m *wire.Message, from *upstream.Call) {
	if s.holdBack(ctx, m, from) {
		return
	}
	select { // nothing overtakes the response to initialize
	case <-s.started:
	case <-s.link.Done():
	case <-ctx.Done():
	}
	s.pass(ctx, m, from)
}

// pass hands a request or notification of the server on.
func (s *Session) pass(ctx context.Context, m *wire.Message, from *upstream.Call) {
	text := m.Text
	switch {
	case m.Kind() == wire.Request:
		text = s.request(ctx, m)
	case m.Method == spec.NotifyCancelled:
		text = s.withdrawn(m)
	}
	if text == nil {
		return
	}
	if err := s.deliver(ctx, m, from, text); err != nil {
		s.link.Drop("undelivered")
		s.opts.Logger.Debug("message of server was not delivered", "method", m.Method, "error", err)
	}
}

// deliver hands a message to the call that it belongs to, else to the session. Where the
// streams don't tell, progress belongs to whoever has its token.
func (s *Session) deliver(ctx context.Context, m *wire.Message, from *upstream.Call, text []byte) error {
	attributes := s.link.Attributes()
	c := s.callOf(from)
	if c == nil && !attributes && m.Method == spec.NotifyProgress {
		token, _ := wire.ParseID(wire.Get(m.Params, spec.MetaProgressToken)) // zero finds none
		c = s.calls.ofToken(token)
	}
	if c != nil {
		return c.out.Message(ctx, text)
	}
	return s.to.Message(ctx, text, !attributes && (m.Kind() == wire.Request || m.Method == spec.NotifyCancelled))
}

// callOf returns the client's call on whose stream a message came, nil if there is none
// or it was answered.
func (s *Session) callOf(from *upstream.Call) *call {
	if from == nil {
		return nil
	}
	c, _ := from.Owner.(*call)
	if c == nil || s.calls.find(c.id) != c {
		return nil
	}
	return c
}

// request returns the server's request under an id of the client session's, nil if
// it was answered here.
func (s *Session) request(ctx context.Context, m *wire.Message) []byte {
	if m.Method == spec.MethodRootsList && s.opts.Roots != nil {
		roots := wire.AppendEdited(nil, nil, wire.Edit{Name: "roots", Value: s.opts.Roots})
		s.link.SendLater(ctx, wire.AppendResult(nil, m.ID, roots, nil))
		return nil
	}
	id, oldest, full := s.inputs.add(m.ID)
	if full {
		s.link.Drop("questions")
		s.opts.Logger.Warn("question of server given up: too many are open", "limit", maxInputs)
		s.link.SendLater(ctx, wire.AppendError(nil, oldest, wire.Errorf(spec.CodeInternal, "%d later questions to this client are open, the limit; it did not answer this one", maxInputs)))
	}
	return withID(m.Text, id)
}

// withdrawn returns the cancellation of a request of the server, nil if that is not open.
func (s *Session) withdrawn(m *wire.Message) []byte {
	id, err := wire.ParseID(wire.Get(m.Params, "requestId"))
	own, ok := s.inputs.withdraw(id)
	if err != nil || !ok {
		s.link.Drop("late cancellation")
		return nil
	}
	return withRequestID(m, own)
}
