package back

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
	"github.com/mcpbridge/mcpbridge/legacy/tasks"
)

// Receive implements [link.Sink].
func (s *session) Receive(ctx context.Context, m *wire.Message, on *upstream.Call) {
	from := clientCallOf(on)
	if m.Kind() == wire.Request {
		s.receiveRequest(ctx, m, on)
	} else {
		s.receiveNotification(ctx, m, on, from)
	}
}

// ListenChanged implements [link.Sink].
func (s *session) ListenChanged(_, missed bool) { s.watch().ListenChanged(missed) }

// receiveRequest handles a request of the server that arrived on the stream of the call on.
func (s *session) receiveRequest(ctx context.Context, m *wire.Message, on *upstream.Call) {
	switch m.Method {
	case spec.MethodRootsList, spec.MethodElicit, spec.MethodSample:
		s.inputs.receive(ctx, m, on)
	case spec.MethodPing:
		s.SendLater(ctx, wire.AppendResult(nil, m.ID, []byte("{}"), nil))
	default:
		s.SendLater(ctx, wire.AppendError(nil, m.ID, wire.Errorf(spec.CodeMethodNotFound, "method not found: %s", m.Method)))
	}
}

// receiveNotification handles a notification of the server that arrived on the stream of
// the call on, which is a part of from.
func (s *session) receiveNotification(ctx context.Context, m *wire.Message, on *upstream.Call, from *call) {
	switch m.Method {
	case spec.NotifyProgress:
		s.progress(ctx, m, from)
	case spec.NotifyMessage:
		s.logMessage(ctx, m, on, from)
	case spec.NotifyToolsListChanged:
		s.tools.Forget()
		s.changed(fanout.ToolsListChanged, m)
	case spec.NotifyPromptsListChanged:
		s.changed(fanout.PromptsListChanged, m)
	case spec.NotifyResourcesListChanged:
		s.changed(fanout.ResourcesListChanged, m)
	case spec.NotifyResourceUpdated:
		s.changed(fanout.ResourceUpdated, m)
	case spec.NotifyCancelled:
		s.inputs.withdraw(m)
	case spec.NotifyElicitationComplete:
		if id, _ := wire.GetString(m.Params, "elicitationId"); !s.completions.Complete(id) {
			s.Drop("unknown visit")
		}
	case tasks.NotifyStatus:
		s.taskStatus(m)
	default:
		s.Drop("unknown notification")
	}
}

// progress passes progress to the call whose token it has, if the call wants progress and
// it has increased.
func (s *session) progress(ctx context.Context, m *wire.Message, from *call) {
	token, err := wire.ParseID(wire.Get(m.Params, spec.MetaProgressToken))
	var c *call
	if err == nil {
		c = clientCall(s.Calls.Find(token))
	}
	if c == nil || c.token() == nil {
		if h := s.tokens.Find(token.String()); h != nil && err == nil {
			message, _ := wire.GetString(m.Params, "message")
			h.Progress(message)
		}
		s.Drop("progress")
		return
	}
	grows := c.clock.Advance(wire.Get(m.Params, "progress"))
	if !grows {
		s.opts.Quirks.Met(quirks.ProgressOrder, "")
	}
	if !grows || c.IsSettled() {
		s.Ignore() // not counted as dropped
		return
	}
	s.deliver(ctx, c, from, m.Method, c.ownToken(m.Params))
}

// logMessage passes a log message to the call on whose stream it arrived, or else to the
// only call in flight, if the client requested that level. A client that has the session for
// itself may follow the other messages.
func (s *session) logMessage(ctx context.Context, m *wire.Message, on *upstream.Call, from *call) {
	c := from
	if on == nil {
		c = s.soleCall()
	}
	name, _ := wire.GetString(m.Params, "level")
	level := spec.LogLevel(name)
	switch wanted := c != nil && c.req.LogLevel.Allows(level); {
	case wanted && (c == from || !c.IsSettled()):
		s.deliver(ctx, c, from, m.Method, m.Params)
	case s.passMessage(level, m.Params):
	default:
		s.Drop("log message")
	}
}

// passMessage passes a log message that no call wants to the client that has the session for
// itself, and reports whether it follows such.
func (s *session) passMessage(level spec.LogLevel, params json.RawMessage) bool {
	t := fanout.Topic{Scope: s.roots.profile.scope, Kind: fanout.StateLost}
	if !s.own || !s.opts.Changes.Wanted(t) {
		return false
	}
	if set := s.level.last(); set != "" && !set.Allows(level) {
		return false
	}
	s.opts.Changes.Publish(fanout.Event{Topic: t, Meta: bytes.Clone(params)})
	return true
}

// soleCall returns the call to which a message without attribution belongs: the only one
// that was sent. It returns nil if there are several, or if the message may be about the
// session itself.
func (s *session) soleCall() *call {
	if s.roots.isSettling() {
		return nil
	}
	var sole *call
	several := false
	s.Calls.Each(func(c *upstream.Call) {
		if host := clientCall(c); host != nil && host.sent.Load() {
			several = several || sole != nil
			sole = host
		}
	})
	if several {
		return nil
	}
	return sole
}

// deliver passes a notification to a call. On the call's own stream it waits for a slow
// caller, which slows the server down; on other streams it does not wait.
func (s *session) deliver(ctx context.Context, c, from *call, method string, params json.RawMessage) {
	if !c.enqueue(method, params) {
		s.Drop("slow caller")
		return
	}
	if c == from {
		c.drain()
		return
	}
	if c.Wake == nil {
		c.drainSoon()
		return
	}
	c.Notice()
}

// taskStatus handles the status of a task: the task is then read.
func (s *session) taskStatus(m *wire.Message) {
	id, _ := wire.GetString(m.Params, "taskId")
	host := s.tasks.Find(id)
	if host == nil || host.notice == nil {
		s.Drop("task status")
		return
	}
	host.notice()
}

// changed passes a change to the profile's watch, whichever stream or session of the
// profile it arrived on.
func (s *session) changed(kind fanout.Kind, m *wire.Message) {
	if !s.announced(kind) {
		s.opts.Quirks.Met(quirks.UndeclaredNotice, "")
	}
	uri, _ := wire.GetString(m.Params, "uri")
	meta := link.ForeignMeta(wire.Get(m.Params, "_meta"))
	told := s.watch().Changed(kind, uri, meta)
	if !told {
		s.Ignore()
	}
	if !told && kind != fanout.ResourceUpdated {
		// There are no subscribers, but cached lists are out of date.
		topic := fanout.Topic{Scope: s.roots.profile.scope, Kind: kind}
		s.opts.Changes.Publish(fanout.Event{Topic: topic, Meta: meta})
	}
}

// announced reports whether the server has declared that it reports changes of a kind. During
// the handshake that is not known.
func (s *session) announced(kind fanout.Kind) bool {
	if !s.roots.isInitialized() {
		return true
	}
	switch kind {
	case fanout.ToolsListChanged:
		return s.caps.Lists.Tools
	case fanout.PromptsListChanged:
		return s.caps.Lists.Prompts
	case fanout.ResourcesListChanged:
		return s.caps.Lists.Resources
	}
	return s.caps.Subscribe
}

// polled handles a change that the gateway has found by polling.
func (s *session) polled(kind fanout.Kind, uri string) {
	if kind == fanout.ToolsListChanged {
		s.tools.Forget()
	}
	s.watch().Changed(kind, uri, nil)
}
