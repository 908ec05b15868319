package hostile

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// A client sends requests from an address of its own.
type client struct {
	http *http.Client
	dial func(context.Context) (net.Conn, error)
	addr string // of mcpbridge
}

func newClient(addr, from string) *client {
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second}
	transport := &http.Transport{DialContext: d.DialContext, MaxIdleConnsPerHost: 100}
	return &client{
		http: &http.Client{Transport: transport},
		dial: func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) },
		addr: addr,
	}
}

// request returns a request of 2026-07-28. params are beside its envelope.
func request(id, method, capabilities, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"0"},"io.modelcontextprotocol/clientCapabilities":%s},%s}}`, id, method, capabilities, params)
}

// modernHeaders are those of a request of 2026-07-28; name may be empty.
func modernHeaders(method, name string) http.Header {
	h := http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method}}
	if name != "" {
		h.Set("Mcp-Name", name)
	}
	return h
}

// post sends a message and returns the response, whose body the caller closes.
func (c *client) post(ctx context.Context, h http.Header, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.addr+"/mcp/s", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = h.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	return c.http.Do(req)
}

// send posts a message and returns the answer.
func (c *client) send(ctx context.Context, h http.Header, body string) (int, http.Header, string, error) {
	res, err := c.post(ctx, h, body)
	if err != nil {
		return 0, nil, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, res.Header, string(text), err
}

// announce opens a connection that announces a body of 4 MiB, and sends one byte of it.
func (c *client) announce(ctx context.Context) (net.Conn, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "POST /mcp/s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 4194304\r\n\r\n{", c.addr)
	return conn, err
}

// tool calls a tool, with text as its argument.
func (c *client) tool(ctx context.Context, name, capabilities, text string) (int, string, error) {
	status, _, body, err := c.send(ctx, modernHeaders("tools/call", name),
		request("1", "tools/call", capabilities, fmt.Sprintf(`"name":%q,"arguments":{"text":"%s"}`, name, text)))
	return status, body, err
}

// listen returns a request for a listen stream.
func listen(id, filter string) string {
	return request(id, "subscriptions/listen", "{}", `"notifications":`+filter)
}

// resources returns a filter of n URIs of about size bytes each.
func resources(prefix any, n, size int) string {
	var uris []string
	for i := range n {
		uris = append(uris, fmt.Sprintf(`"note://%v/%d/%s"`, prefix, i, megabyte[:size]))
	}
	return `{"resourceSubscriptions":[` + strings.Join(uris, ",") + `]}`
}

var megabyte = strings.Repeat("x", 1<<20)

// holdConn keeps a connection until ctx or its peer ends it.
func holdConn(ctx context.Context, conn net.Conn) {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, _ = io.Copy(io.Discard, conn)
	_ = conn.Close()
}

// text returns a text of so many bytes that needs no escape.
func text(size int) string { return strings.Repeat(megabyte, size>>20) + megabyte[:size&(1<<20-1)] }
