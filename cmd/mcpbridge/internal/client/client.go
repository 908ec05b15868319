// Package client asks one server of the modern revision for a person, and prints what it
// answers. It answers no questions and says so.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/sse"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// maxAnswer bounds a JSON answer, in bytes, as the SSE reader bounds an event.
const maxAnswer = sse.DefaultMaxEventSize

// shownAnswer bounds how much of what is no answer is shown, in bytes.
const shownAnswer = 200

// ErrLost says that a response stream ended before its response.
var ErrLost = errors.New("the connection was lost")

// A Client sends requests to one endpoint.
type Client struct {
	url    string
	header http.Header
	info   []byte
	http   *http.Client
	end    func()
}

// Options say how an endpoint is reached.
type Options struct {
	Header http.Header // for every request
	Info   []byte      // clientInfo, an Implementation object
	// TLS is for a URL of https; nil means the authorities that the system trusts.
	TLS *tls.Config
	// RoundTripper sends the requests; nil has them sent over the network.
	RoundTripper http.RoundTripper
	// End ends what was started for the client; it may be nil.
	End func()
}

// New returns a client of the endpoint.
func New(endpoint string, o Options) *Client {
	c := &Client{url: endpoint, header: o.Header, info: o.Info, end: o.End}
	c.http = &http.Client{Transport: o.RoundTripper, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // headers may be credentials
	}}
	if o.RoundTripper == nil {
		// A transport of its own: closing it leaves no connection behind.
		c.http.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, OnProxyConnectResponse: transport.CheckProxy, TLSClientConfig: o.TLS.Clone()}
		c.end = c.http.CloseIdleConnections
	}
	return c
}

// Close ends the connections, and what was started for them.
func (c *Client) Close() {
	if c.end != nil {
		c.end()
	}
}

// A call is one request.
type call struct {
	id     wire.ID
	method string
	name   string // Mcp-Name; empty for methods without one
	params []byte // an object; _meta is added
	meta   []wire.Edit
	header http.Header // Mcp-Param-*; may be nil
	// notify is called for each notification before the response, with the
	// message as it came; it may be nil.
	notify func(m *wire.Message, raw []byte) error
}

// do sends a request and reads until its response, which it returns as it came, too. The
// error is a [*wire.Error] if the server said no, and wraps ErrLost if the connection was
// lost first.
func (c *Client) do(ctx context.Context, q call) (m wire.Message, raw []byte, err error) {
	resp, err := c.post(ctx, q)
	if err != nil {
		return wire.Message{}, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch typ, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); typ {
	case "text/event-stream":
		m, raw, err = q.readStream(resp.Body)
	case "application/json":
		if m, raw, err = readJSON(resp.Body); raw != nil && err != nil {
			return wire.Message{}, nil, c.noAnswer(resp, raw)
		}
	default:
		text, _ := io.ReadAll(io.LimitReader(resp.Body, shownAnswer)) // as much as there is
		return wire.Message{}, nil, c.noAnswer(resp, text)
	}
	if err != nil && ctx.Err() != nil {
		return m, raw, context.Cause(ctx)
	}
	if err != nil {
		return m, raw, fmt.Errorf("%s: %w", c.url, err)
	}
	if m.Error != nil {
		return m, raw, m.Error
	}
	return m, raw, nil
}

// post sends the request with the headers that mirror it.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Request Metadata.
func (c *Client) post(ctx context.Context, q call) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(q.request(c.info)))
	if err != nil {
		return nil, fmt.Errorf("asking %s: %v", c.url, err)
	}
	maps.Copy(req.Header, c.header)
	maps.Copy(req.Header, q.header)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set(spec.HeaderProtocolVersion, string(spec.LatestModern))
	req.Header.Set(spec.HeaderMethod, q.method)
	if q.name != "" {
		req.Header.Set(spec.HeaderName, protocol.EncodeHeader(q.name))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return resp, nil
}

// unreachable takes the request's text off the error of net/http, and says what
// to do.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if ue := (*url.Error)(nil); errors.As(err, &ue) {
		err = ue.Err
	}
	advice := "is mcpbridge serve running there?"
	if !errors.Is(err, syscall.ECONNREFUSED) {
		advice = cmp.Or(transport.Advice(err), advice)
	}
	return fmt.Errorf("reaching %s: %v; %s", c.url, err, advice)
}

// noAnswer describes a response that is no JSON-RPC: most likely the endpoint
// is something else.
func (c *Client) noAnswer(resp *http.Response, text []byte) error {
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(string(text[:min(len(text), shownAnswer)]), "")), "\n")
	advice := "is the path right, as in /mcp/NAME?"
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		advice = "give it credentials: --header 'Authorization: Bearer …'"
	}
	return fmt.Errorf("%s answered %s %q, which is not MCP; %s", c.url, resp.Status, line, advice)
}

func readJSON(body io.Reader) (wire.Message, []byte, error) {
	raw, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	if err != nil {
		return wire.Message{}, nil, fmt.Errorf("%w: %v", ErrLost, err)
	}
	if len(raw) > maxAnswer {
		return wire.Message{}, nil, fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	}
	m, err := wire.Parse(raw, wire.Options{})
	return m, raw, err
}

// readStream reads an event stream until the response.
func (q *call) readStream(body io.Reader) (wire.Message, []byte, error) {
	r := sse.NewReader(body, sse.ReaderOptions{})
	for {
		_, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return wire.Message{}, nil, ErrLost
		case err != nil:
			return wire.Message{}, nil, fmt.Errorf("%w: %v", ErrLost, err)
		}
		raw := r.Take()
		m, err := wire.Parse(raw, wire.Options{})
		if err != nil {
			return m, nil, err
		}
		if m.Kind() == wire.Response && (m.ID == q.id || m.ID.IsZero()) {
			return m, raw, nil
		}
		if m.Kind() == wire.Notification && q.notify != nil {
			if err := q.notify(&m, raw); err != nil {
				return m, nil, err
			}
		}
	}
}

// request is the text of a call. Its envelope says who asks.
//
// Spec: 2026-07-28, basic, _meta.
func (q *call) request(info []byte) []byte {
	edits := append([]wire.Edit{
		{Name: spec.MetaProtocolVersion, Value: wire.Quote(string(spec.LatestModern))},
		{Name: spec.MetaClientInfo, Value: info},
		{Name: spec.MetaClientCapabilities, Value: []byte("{}")},
	}, q.meta...)
	meta := wire.AppendEdited(nil, nil, edits...)
	params := wire.AppendEdited(nil, q.params, wire.Edit{Name: "_meta", Value: meta})
	return wire.AppendRequest(nil, q.id, q.method, params, nil)
}
