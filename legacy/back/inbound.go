package back

import (
	"context"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// reading is how a server's texts are read: as strictly as those of clients, who
// would have to refuse what is passed on.
var reading = wire.Options{}

// receiveText takes what the server sent in one piece: a message, or a batch,
// which 2025-03-26 allows and which is taken apart. text is the session's from
// then on. from is the call on whose own stream it came, nil if it came where
// messages arrive unasked. What can't be read is logged and skipped, unless it is
// the answer to a call. release, which may be nil, gives text back; it is called
// for a single response only, of which nothing is kept.
func (s *wireSession) receiveText(ctx context.Context, text []byte, from *wireCall, release func()) {
	m, err := wire.Parse(text, reading)
	switch {
	case err == nil && m.Kind() == wire.Response:
		s.respond(&m, release)
	case err == nil:
		s.to.receive(ctx, &m, from)
	case isEnvelope(err) && wire.IsArray(text):
		for e := range wire.Elements(text) {
			if !wire.IsArray(e) {
				s.receiveText(ctx, e, from, nil)
			}
		}
	default:
		s.unreadable(text, err)
	}
}

// respond hands a response to the call that waits for it elsewhere than on its
// own stream. release gives back the text that m aliases; it may be nil. One to no call in
// flight is dropped and counted: where ids alone tell whose an answer is it misleads
// nobody, it may be to a call that was cancelled, and the end of the connection would be
// that of the session, and of everybody's calls.
func (s *wireSession) respond(m *wire.Message, release func()) {
	c := s.calls.find(m.ID)
	if c == nil {
		s.drop("late answer")
		return
	}
	a := answerOf(m, release)
	if err := c.in.Take(len(m.Text)); err != nil {
		a.free()
		c.cancel(err)
		return
	}
	if !c.settle(a) {
		s.drop("late answer")
		return
	}
	c.cancel(errAnswered)
}

// unreadable fails the call that an unreadable message answers. If it answers
// none it is logged and skipped.
func (s *wireSession) unreadable(text []byte, err error) {
	if id, method := wire.Salvage(text); method == "" {
		if c := s.calls.find(id); c != nil && c.settle(answer{err: s.badAnswer(err)}) {
			c.cancel(errAnswered)
			return
		}
	}
	s.drop("unreadable")
	s.odd.Warn(s.log, "skipping unreadable message of server", "error", err)
}

func (s *wireSession) badAnswer(err error) *wire.Error {
	return wire.Errorf(spec.CodeInternal, "server %q sent an answer that can't be read: %v", s.opts.Name, err)
}

// receiveRationed is receiveText for a reader with a ration.
func (s *wireSession) receiveRationed(ctx context.Context, r *transport.Throttle, text []byte, from *wireCall, release func()) {
	n, before := len(text), s.useless.Load()
	s.receiveText(ctx, text, from, release)
	if s.useless.Load() != before {
		r.Message(n)
	}
}

func isEnvelope(err error) bool {
	var e *wire.EnvelopeError
	return errors.As(err, &e)
}
