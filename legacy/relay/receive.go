package relay

import (
	"context"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// ListenChanged implements [link.Sink]. It does nothing: the client itself notices the end
// of the session, and what it has missed.
func (s *Session) ListenChanged(open, missed bool) {}

// Receive implements [link.Sink].
func (s *Session) Receive(ctx context.Context, m *wire.Message, from *upstream.Call) {
	if s.holdBack(ctx, m, from) {
		return
	}
	select { // no message may arrive before the response to initialize
	case <-s.started:
	case <-s.link.Done():
	case <-ctx.Done():
	}
	s.pass(ctx, m, from)
}

// pass forwards a request or notification of the server.
func (s *Session) pass(ctx context.Context, m *wire.Message, from *upstream.Call) {
	text := m.Text
	switch {
	case m.Kind() == wire.Request:
		text = s.request(ctx, m, from)
	case m.Method == spec.NotifyCancelled:
		text = s.withdrawn(m)
	}
	if text == nil {
		return
	}
	err := s.deliver(ctx, m, from, text)
	if err == nil {
		return
	}
	s.link.Drop("undelivered")
	s.opts.Logger.Debug("message of server was not delivered", "method", m.Method, "error", err)
	if refusal := (*wire.Error)(nil); m.Kind() == wire.Request && errors.As(err, &refusal) { // the server need not wait
		if _, open := s.inputs.withdraw(m.ID); open {
			s.link.SendLater(ctx, wire.AppendError(nil, m.ID, refusal))
		}
	}
}

// deliver sends a message on the stream of its call, or else to the session.
func (s *Session) deliver(ctx context.Context, m *wire.Message, from *upstream.Call, text []byte) error {
	attributes := s.link.Attributes()
	c := s.callOf(from)
	if c == nil && !attributes {
		c = s.callAbout(m)
	}
	if c != nil {
		return c.out.Message(ctx, text)
	}
	return s.to.Message(ctx, text, !attributes && (m.Kind() == wire.Request || m.Method == spec.NotifyCancelled))
}

// callAbout returns the call to which a message belongs whose stream does not tell; nil if
// it is not known. Progress has the token of its call. A log message belongs to the only
// call: the client may end its session after that, without reading another stream.
func (s *Session) callAbout(m *wire.Message) *call {
	switch m.Method {
	case spec.NotifyProgress:
		token, _ := wire.ParseID(wire.Get(m.Params, spec.MetaProgressToken)) // zero matches no call
		return s.calls.ofToken(token)
	case spec.NotifyMessage:
		return s.calls.sole()
	}
	return nil
}

// callOf returns the client's call on whose stream a message arrived; nil if there is none
// or it has been answered.
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

// request returns the server's request with an id for the client; nil if it was answered
// here.
func (s *Session) request(ctx context.Context, m *wire.Message, from *upstream.Call) []byte {
	if m.Method == spec.MethodRootsList && s.opts.Roots != nil {
		roots := wire.AppendEdited(nil, nil, wire.Edit{Name: "roots", Value: s.opts.Roots})
		s.link.SendLater(ctx, wire.AppendResult(nil, m.ID, roots, nil))
		return nil
	}
	id, oldest, full := s.inputs.add(m.ID)
	if full {
		s.link.Drop("questions")
		s.opts.Logger.Warn("request of the server given up: too many are open", "limit", maxInputs)
		s.link.SendLater(ctx, wire.AppendError(nil, oldest, wire.Errorf(spec.CodeInternal, "%d later requests to this client are open, the limit; it did not respond to this one", maxInputs)))
	}
	text := withID(m.Text, id)
	s.observeQuestion(m, from, id, text)
	return text
}

// withdrawn returns the cancellation of a request of the server; nil if that request is not
// open.
func (s *Session) withdrawn(m *wire.Message) []byte {
	id, err := wire.ParseID(wire.Get(m.Params, "requestId"))
	own, ok := s.inputs.withdraw(id)
	if err != nil || !ok {
		s.link.Drop("late cancellation")
		return nil
	}
	return withRequestID(m, own)
}
