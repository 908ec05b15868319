package relay

import (
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// observeQuestion tells the observers of a call that the server asks the client during it: m, and
// as text with the client's id. Where no stream tells which call it is, it is the only one, if
// there is one: observers may be wrong about that, and nobody else heeds it.
func (s *Session) observeQuestion(m *wire.Message, from *upstream.Call, id wire.ID, text []byte) {
	if m.Method == spec.MethodPing {
		return
	}
	c, told := s.callOf(from), true
	if c == nil {
		c, told = s.calls.sole(), false
	}
	if c == nil || c.Exchange == nil {
		return
	}
	x := c.Exchange
	s.inputs.observe(id, x)
	x.Received(m.Text)
	if !told { // on its stream the call tells of it itself
		x.Request().Event(trace.InputRequired, m.Method)
		x.Request().Sent(text)
	}
}

// observeAnswer tells the observers of x, which may be nil, of the client's answer m, and of the
// text with the server's id.
func observeAnswer(x *trace.Exchange, m *wire.Message, text []byte) {
	if x != nil {
		x.Request().Received(m.Text)
		x.Request().Event(trace.InputAnswered, "")
		x.Sent(text)
	}
}

// observe notes which call an open request belongs to, by the client's id.
func (t *inputs) observe(id wire.ID, x *trace.Exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, open := t.server[id]; !open {
		return
	}
	if t.observed == nil {
		t.observed = make(map[wire.ID]*trace.Exchange)
	}
	t.observed[id] = x
}

// observer returns what observes the call of an open request; nil if nobody does.
func (t *inputs) observer(id wire.ID) *trace.Exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.observed[id]
}
