package access

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Session is a legacy client's session that is relayed to an upstream session of its own.
// A nil Session controls nothing.
type Session struct {
	c      *Control
	sender sender
	client string
	last   atomic.Pointer[mcp.Identity] // of the last request
}

// Session returns the session that req, an initialize, opens.
func (c *Control) Session(req *mcp.Request) *Session {
	if c == nil {
		return nil
	}
	s := &Session{c: c, sender: c.senderOf(req), client: mcp.ClientName(req.ClientInfo)}
	s.sender.info = nil
	s.last.Store(req.Identity)
	return s
}

// Client returns a RelayClient that forwards to c what the client may receive.
func (s *Session) Client(c mcp.RelayClient) mcp.RelayClient {
	if s == nil || !s.hides() {
		return c
	}
	return &client{c, s}
}

// Relay returns a Relay that forwards to r what the client may send. The session is open.
func (s *Session) Relay(r mcp.Relay) mcp.Relay {
	if s == nil {
		return r
	}
	q := s.request(spec.MethodInitialize, s.last.Load())
	q.sender.origin = s.sender.origin
	_ = q.open(nil) // it was decided on before
	q.verdict = ""
	q.record(nil)
	return &relay{r, s}
}

func (s *Session) hides() bool { return s.c.hidesResources() }

// request returns the request for a message that id sent.
func (s *Session) request(method string, id *mcp.Identity) request {
	q := request{c: s.c, sender: s.sender, client: s.client, method: method}
	q.sender.identity = id
	q.sender.origin = origin{address: s.sender.address}
	return q
}

// updated is part of the method of updates, unless that is written with escapes.
var updated = []byte("updated")

// hidesUpdate reports whether a message of the server is an update of a resource that the
// client may not subscribe to.
func (s *Session) hidesUpdate(text []byte) bool {
	if !bytes.Contains(text, updated) && bytes.IndexByte(text, '\\') < 0 {
		return false // the usual case: it is not an update
	}
	m, err := wire.Parse(text, wire.Options{})
	if err != nil || m.Method != spec.NotifyResourceUpdated {
		return false
	}
	from := s.sender
	from.identity = s.last.Load()
	caller := from.caller()
	return s.c.hidesUpdate(&caller, m.Params)
}

type relay struct {
	mcp.Relay
	s *Session
}

// Call implements [mcp.Relay].
func (r *relay) Call(m *wire.Message, o mcp.RelayedCall) {
	id := o.Identity()
	r.s.last.Store(id)
	if err := r.s.c.unwritten(m.Method); err != nil {
		o.Lost(err)
		return
	}
	c := &call{RelayedCall: o, request: r.s.request(m.Method, id), s: r.s}
	c.sender.origin = r.s.c.originOf(o.Arrival(), o.Trace(), m.Meta)
	if err := c.admit(m.Params, m.Extra, m.Plain); err != nil {
		c.record(err)
		o.Lost(err)
		return
	}
	r.Relay.Call(c.message(m), c)
}

// message returns the client's message as the server gets it.
func (q *request) message(m *wire.Message) *wire.Message {
	if q.params == nil {
		return m
	}
	sent := *m
	sent.Params, sent.Outline, sent.Plain = q.params, nil, wire.Plain{}
	sent.Text = wire.AppendReplaced(nil, m.Text, wire.Edit{Name: "params", Value: q.params})
	return &sent
}

// Send implements [mcp.Relay]. It refuses a request that is sent as a notification: some
// servers would run it.
func (r *relay) Send(ctx context.Context, m *wire.Message) error {
	if !r.s.c.decidesOnNames() {
		return r.Relay.Send(ctx, m)
	}
	q := r.s.request(m.Method, r.s.last.Load())
	if err := q.notify(m); err != nil {
		q.record(err)
		return err
	}
	return r.Relay.Send(ctx, m)
}

// notify decides on a notification or a response.
func (q *request) notify(m *wire.Message) error {
	if m.Kind() == wire.Response {
		return q.open(m)
	}
	if !strings.HasPrefix(m.Method, spec.MethodNotificationsPrefix) {
		q.start()
		return q.ambiguous(errNoID)
	}
	err := q.admit(m.Params, m.Extra, m.Plain)
	q.ticket.Give()
	return err
}

// A call is a forwarded request of the client.
type call struct {
	mcp.RelayedCall
	request
	s *Session
}

// Message implements [mcp.RelayedCall].
func (c *call) Message(ctx context.Context, text []byte) error {
	if c.s.hides() && c.s.hidesUpdate(text) {
		return nil
	}
	return c.RelayedCall.Message(ctx, text)
}

// Answer implements [mcp.RelayedCall].
func (c *call) Answer(text []byte, failed error) {
	c.ticket.Give()
	if _, _, isList := c.op.Listed(); isList && failed == nil {
		result := wire.Get(text, "result")
		body, changed, err := c.list(result, nil)
		if err != nil {
			c.record(err)
			c.RelayedCall.Lost(err)
			return
		}
		if changed {
			text = wire.AppendEdited(make([]byte, 0, len(text)), text, wire.Edit{Name: "result", Value: body})
		}
	}
	c.record(failed)
	c.RelayedCall.Answer(text, failed)
}

// Lost implements [mcp.RelayedCall].
func (c *call) Lost(err error) {
	c.ticket.Give()
	c.record(err)
	c.RelayedCall.Lost(err)
}

type client struct {
	mcp.RelayClient
	s *Session
}

// Message implements [mcp.RelayClient].
func (c *client) Message(ctx context.Context, text []byte, anyway bool) error {
	if c.s.hidesUpdate(text) {
		return nil
	}
	return c.RelayClient.Message(ctx, text, anyway)
}
