package router

import (
	"context"
	"net/http"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// arrivalOf returns how the message of an HTTP request has arrived; nil while nobody observes, and
// there is no audit log.
func arrivalOf(r *http.Request, g *Gateway) *trace.Arrival {
	observed := g.opts.Observers.Any()
	if !observed && g.now().opts.Audit == nil {
		return nil
	}
	a := arrivalBy("http", r, g)
	a.Version, a.Context = strings.TrimPrefix(r.Proto, "HTTP/"), trace.FromHeader(r.Header)
	if !observed {
		return a
	}
	a.Header = r.Header
	return g.opts.Observers.Arrive(*a)
}

// arrivalBy returns how all messages arrive that an HTTP request opens the way for.
func arrivalBy(protocol string, r *http.Request, g *Gateway) *trace.Arrival {
	return &trace.Arrival{Protocol: protocol, Peer: r.RemoteAddr, Client: g.now().proxies.Address(r)}
}

// observe tells the observers of a client's request, once. Requests of the gateway itself
// have no id.
func (s *server) observe(req *mcp.Request) {
	o := s.g.opts.Observers
	if !o.Any() || req.Trace != nil || req.ID.IsZero() {
		return
	}
	req.Trace = o.Begin(trace.Info{
		Server: s.name, Method: req.Method, Named: s.log.names.Named(req), ID: req.ID.String(),
		Era: req.Era.String(), Revision: string(req.Revision),
		Principal: nameOf(req.Principal), Session: req.Session, ClientInfo: req.ClientInfo,
		Arrival: req.Arrival, Context: trace.FromMeta(req.Meta),
	})
}

// nameOf returns the name of a principal, empty for an anonymous client.
func nameOf(p mcp.Principal) string {
	if p == mcp.Anonymous {
		return ""
	}
	return string(p)
}

// observe tells the observers of a call that is passed on; it returns nil if there are none.
func (l *loggedRelay) observe(m *wire.Message, o mcp.RelayedCall) *trace.Request {
	observers := l.s.g.opts.Observers
	if !observers.Any() {
		return nil
	}
	r := observers.Begin(trace.Info{
		Server: l.s.name, Method: m.Method, Name: l.s.log.names.Subject(m.Method, m.Params), ID: m.ID.String(),
		Era: spec.Legacy.String(), Revision: string(l.by.revision),
		Principal: nameOf(l.by.principal), Session: l.by.session, ClientInfo: l.by.info,
		Arrival: o.Arrival(), Context: trace.FromMeta(m.Meta),
	})
	r.Received(m.Text)
	return r
}

// Trace implements [mcp.RelayedCall].
func (c *loggedCall) Trace() *trace.Request { return c.trace }

// Message implements [mcp.RelayedCall].
func (c *loggedCall) Message(ctx context.Context, text []byte) error {
	if c.trace != nil {
		c.noteMessage(text)
	}
	return c.RelayedCall.Message(ctx, text)
}

// noteMessage tells the observers of a message that the server sends during the call.
func (c *loggedCall) noteMessage(text []byte) {
	if m, err := wire.Parse(text, wire.Options{}); err == nil && m.Kind() == wire.Request {
		c.trace.Event(trace.InputRequired, m.Method)
	}
	c.trace.Sent(text)
}
