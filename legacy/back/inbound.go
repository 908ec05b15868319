package back

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
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
func (s *session) receiveText(ctx context.Context, text []byte, from *call, release func()) {
	m, err := wire.Parse(text, reading)
	switch {
	case err == nil && m.Kind() == wire.Response:
		s.respond(&m, release)
	case err == nil:
		s.receive(ctx, &m, from)
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

// receive takes one request or notification of the server.
func (s *session) receive(ctx context.Context, m *wire.Message, from *call) {
	if s.relay != nil {
		s.relay.receive(ctx, m, from)
		return
	}
	from = from.host()
	if m.Kind() == wire.Request {
		s.question(ctx, m, from)
	} else {
		s.notification(ctx, m, from)
	}
}

// respond hands a response to the call that waits for it elsewhere than on its
// own stream. release gives back the text that m aliases; it may be nil. One to no call in
// flight is dropped and counted: where ids alone tell whose an answer is it misleads
// nobody, it may be to a call that was cancelled, and the end of the connection would be
// that of the session, and of everybody's calls.
func (s *session) respond(m *wire.Message, release func()) {
	c := s.call(m.ID)
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

// answerOf returns the response in m; release, which may be nil, gives back the
// text that m aliases.
func answerOf(m *wire.Message, release func()) answer {
	return answer{text: m.Text, result: m.Result, outline: m.Outline, err: m.Error, extra: m.Extra, release: release}
}

// unreadable fails the call that an unreadable message answers. If it answers
// none it is logged and skipped.
func (s *session) unreadable(text []byte, err error) {
	if id, method := wire.Salvage(text); method == "" {
		if c := s.call(id); c != nil && c.settle(answer{err: s.badAnswer(err)}) {
			c.cancel(errAnswered)
			return
		}
	}
	s.drop("unreadable")
	s.odd.Warn(s.log, "skipping unreadable message of server", "error", err)
}

func (s *session) badAnswer(err error) *wire.Error {
	return wire.Errorf(spec.CodeInternal, "server %q sent an answer that can't be read: %v", s.opts.Name, err)
}

// question takes a request of the server.
func (s *session) question(ctx context.Context, m *wire.Message, from *call) {
	switch m.Method {
	case spec.MethodRootsList, spec.MethodElicit, spec.MethodSample:
		s.inquire(ctx, m, from)
	case spec.MethodPing:
		s.sendLater(ctx, wire.AppendResult(nil, m.ID, []byte("{}"), nil))
	default:
		s.sendLater(ctx, wire.AppendError(nil, m.ID, wire.Errorf(spec.CodeMethodNotFound, "method not found: %s", m.Method)))
	}
}

func (s *session) notification(ctx context.Context, m *wire.Message, from *call) {
	switch m.Method {
	case spec.NotifyProgress:
		s.progress(ctx, m, from)
	case spec.NotifyMessage:
		s.logMessage(ctx, m, from)
	case spec.NotifyToolsListChanged:
		s.tools.forget()
		s.changed(fanout.ToolsListChanged, m)
	case spec.NotifyPromptsListChanged:
		s.changed(fanout.PromptsListChanged, m)
	case spec.NotifyResourcesListChanged:
		s.changed(fanout.ResourcesListChanged, m)
	case spec.NotifyResourceUpdated:
		s.changed(fanout.ResourceUpdated, m)
	case spec.NotifyCancelled:
		s.withdraw(m)
	case spec.NotifyElicitationComplete:
		s.visited(m)
	case notifyTaskStatus:
		s.taskStatus(m)
	default:
		s.drop("unknown notification")
	}
}

// progress hands progress to the request whose token it bears, if that wants
// any and it is some.
func (s *session) progress(ctx context.Context, m *wire.Message, from *call) {
	token, err := wire.ParseID(wire.Get(m.Params, spec.MetaProgressToken))
	var c *call
	if err == nil {
		c = s.call(token)
	}
	if c == nil || c.token == nil {
		s.drop("progress")
		return
	}
	if !c.advance(wire.Get(m.Params, "progress")) {
		s.useless.Add(1) // nothing was lost
		return
	}
	s.tell(ctx, c, from, m.Method, c.ownToken(m.Params))
}

// logMessage hands a log message to the request on whose stream it came, else
// to the only one in flight; to neither unless it is a client's that asked for that
// level.
func (s *session) logMessage(ctx context.Context, m *wire.Message, from *call) {
	c := from
	if c == nil {
		c = s.soleCall()
	}
	level, _ := wire.GetString(m.Params, "level")
	if c == nil || c.x == nil || !c.level.Allows(spec.LogLevel(level)) {
		s.drop("log message")
		return
	}
	s.tell(ctx, c, from, m.Method, m.Params)
}

// tell hands a notification to a call. On the call's own stream this is its
// goroutine, which waits for a slow caller and so slows the server down; on any
// other, nobody waits.
func (s *session) tell(ctx context.Context, c, from *call, method string, params json.RawMessage) {
	if !c.note(method, params) {
		s.drop("slow caller")
		return
	}
	if c == from {
		c.drain()
		return
	}
	if c.wake == nil {
		c.drainSoon()
		return
	}
	select {
	case c.wake <- struct{}{}:
	default: // it knows
	}
}

// changed tells the profile's watch, whichever stream or session of the profile
// the news came on.
func (s *session) changed(kind fanout.Kind, m *wire.Message) {
	uri, _ := wire.GetString(m.Params, "uri")
	meta := wire.Get(m.Params, "_meta")
	told := s.watch().changed(kind, uri, meta)
	if !told {
		s.useless.Add(1)
	}
	if !told && kind != fanout.ResourceUpdated {
		// Nobody was promised to hear of it, but what is kept of the list is old.
		topic := fanout.Topic{Scope: s.roots.scope, Kind: kind}
		s.opts.Changes.Publish(fanout.Event{Topic: topic, Meta: foreignMeta(meta)})
	}
}

func (s *session) drop(what string) {
	s.useless.Add(1)
	s.opts.Metrics.Dropped(s.opts.Name, what)
}

// ration bounds how fast a reader of the session takes what nobody needs.
func (s *session) ration() *transport.Throttle {
	return &transport.Throttle{Busy: s.busy, Done: s.gone}
}

// busy reports whether a call waits for its answer.
func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls) > 0
}

// receiveRationed is receiveText for a reader with a ration.
func (s *session) receiveRationed(ctx context.Context, r *transport.Throttle, text []byte, from *call, release func()) {
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
