// Package client sends requests to one server of the modern revision for a person, and
// prints the responses. It refuses input requests. A server that needs it is asked through a
// [Gateway] of this process.
package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"syscall"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/sse"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxMessage limits a message, in bytes.
const maxMessage = sse.DefaultMaxEventSize

// shownText limits how much of a response is quoted that is not MCP, in bytes.
const shownText = 200

// ErrLost says that a reply ended before its response.
var ErrLost = errors.New("the connection was lost")

// A Client sends requests to one endpoint.
type Client struct {
	opts upstream.Options
	base http.Header // of all requests
	can  []byte      // clientCapabilities, an object
	http *upstream.HTTP
	end  func()
	// heard is called when a message, or an error, has come; it may be nil.
	heard func()
}

// Options configure a Client.
type Options struct {
	Header http.Header // for every request
	Info   []byte      // clientInfo, an Implementation object
	// TLS is for an https URL; nil means the authorities that the system trusts.
	TLS *tls.Config
	// RoundTripper sends the requests; nil means over the network.
	RoundTripper http.RoundTripper
	// End ends what was started for the client; it may be nil.
	End func()
}

// New returns a client of the endpoint, a valid URL.
func New(endpoint string, o Options) *Client {
	c := &Client{end: o.End, can: []byte("{}"), opts: upstream.Options{
		Name: endpoint, URL: endpoint, Headers: o.Header, ClientInfo: o.Info, TLS: o.TLS, RoundTripper: o.RoundTripper, MaxMessage: maxMessage,
	}}
	c.opts.Fill(spec.Modern)
	c.base, c.http = c.opts.BaseHeader(), upstream.NewHTTP(&c.opts, upstream.Reading{Keep: true})
	return c
}

// Declare sets the capabilities, an object, that later requests declare. Servers may list other
// things to clients that can more. Nothing that a server asks is answered all the same.
func (c *Client) Declare(capabilities []byte) { c.can = capabilities }

// WhenHeard has f called whenever something comes of the server, before it is shown.
func (c *Client) WhenHeard(f func()) { c.heard = f }

// Close ends the connections, and what was started for them.
func (c *Client) Close() {
	c.http.Close()
	if c.end != nil {
		c.end()
	}
}

// A call is one request. It is not an [upstream.Call], because its id may be any that a
// person chose.
type call struct {
	id     wire.ID
	method string
	name   string // Mcp-Name; empty for methods without one
	params []byte // an object; _meta is added
	meta   []wire.Edit
	header http.Header // Mcp-Param-*; may be nil
	// notify is called for each notification before the response; it may be nil.
	notify func(m *wire.Message) error
}

// do sends a request and returns its response. The error is a [*wire.Error] if that is one,
// and wraps ErrLost if the reply ended before the response.
func (c *Client) do(ctx context.Context, q call) (m wire.Message, err error) {
	if c.heard != nil {
		defer c.heard()
		if told := q.notify; told != nil {
			q.notify = func(m *wire.Message) error { c.heard(); return told(m) }
		}
	}
	reply, err := c.http.Post(ctx, nil, c.headers(q), q.request(c.opts.ClientInfo, c.can))
	if err != nil {
		return m, c.unreachable(ctx, err)
	}
	defer reply.Close()
	if reply.IsStream() && !reply.IsError() {
		m, err = q.readStream(reply)
	} else {
		text, failed := transport.ReadAll(reply.Body(), 0, maxMessage)
		if m, err = wire.Parse(text, wire.Options{MaxDepth: upstream.Depth}); failed == nil && err != nil {
			return m, c.notMCP(reply, text)
		}
		err = failed
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return m, context.Cause(ctx)
	case err != nil:
		return m, fmt.Errorf("%s: %w", c.opts.URL, err)
	case m.Error != nil && mcp.Unavailable(m.Error):
		return m, errors.New(m.Error.Message) // of mcpbridge itself, whose code says nothing more
	case m.Error != nil:
		return m, m.Error
	}
	return m, nil
}

// headers returns the headers of a request, which mirror its body.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Request Metadata.
func (c *Client) headers(q call) http.Header {
	h := c.base.Clone()
	maps.Copy(h, q.header)
	h.Set(spec.HeaderProtocolVersion, string(spec.LatestModern))
	h.Set(spec.HeaderMethod, q.method)
	if q.name != "" {
		h.Set(spec.HeaderName, spec.EncodeHeader(q.name))
	}
	return h
}

// unreachable returns the error of a request that got no reply, with what to do.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err = upstream.AsFailure(err).Cause
	advice := "is mcpbridge serve running there?"
	if !errors.Is(err, syscall.ECONNREFUSED) {
		advice = cmp.Or(transport.Advice(err), advice)
	}
	return fmt.Errorf("reaching %s: %v; %s", c.opts.URL, err, advice)
}

// notMCP describes a reply that is not JSON-RPC: most likely the endpoint is something
// else.
func (c *Client) notMCP(r *upstream.Reply, text []byte) error {
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(string(text[:min(len(text), shownText)]), "")), "\n")
	advice := "is the path right, as in /mcp/NAME?"
	if r.Status() == http.StatusUnauthorized || r.Status() == http.StatusForbidden {
		advice = "give it credentials: --header 'Authorization: Bearer …'"
	}
	return fmt.Errorf("%s answered %d %s %q, which is not MCP; %s", c.opts.URL, r.Status(), http.StatusText(r.Status()), line, advice)
}

// readStream reads an event stream until the response.
func (q *call) readStream(r *upstream.Reply) (wire.Message, error) {
	for {
		m, err := r.Next()
		switch {
		case errors.Is(err, upstream.ErrUnanswered):
			return wire.Message{}, ErrLost
		case err != nil:
			return wire.Message{}, fmt.Errorf("%w: %w", ErrLost, err)
		case m.Kind() == wire.Response && (m.ID == q.id || m.ID.IsZero()):
			return *m, nil
		case m.Kind() == wire.Notification && q.notify != nil:
			if err := q.notify(m); err != nil {
				return *m, err
			}
		}
	}
}

// request returns the text of a call.
//
// Spec: 2026-07-28, basic, _meta.
func (q *call) request(info, capabilities []byte) []byte {
	edits := append([]wire.Edit{
		{Name: spec.MetaProtocolVersion, Value: wire.Quote(string(spec.LatestModern))},
		{Name: spec.MetaClientInfo, Value: info},
		{Name: spec.MetaClientCapabilities, Value: capabilities},
	}, q.meta...)
	meta := wire.AppendEdited(nil, nil, edits...)
	params := wire.AppendEdited(nil, q.params, wire.Edit{Name: "_meta", Value: meta})
	return wire.AppendRequest(nil, q.id, q.method, params, nil)
}
