package traces

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan  = "00f067aa0ba902b7" // in _meta
	proxySpan   = "10f067aa0ba902b7" // in the headers of HTTP

	inMeta   = `"traceparent":"00-` + clientTrace + `-` + clientSpan + `-01","tracestate":"vendor=1","baggage":"tenant=7"`
	inHeader = "00-" + clientTrace + "-" + proxySpan + "-01"
)

// A client sends messages to one endpoint.
type client struct {
	t       *testing.T
	url     string
	session string
}

// post sends a message, with more headers as pairs. The caller closes the body.
func (c *client) post(body string, header ...string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return res
}

// messages reads the messages of a response, which is JSON or a stream, one at a time.
func messages(t *testing.T, res *http.Response) func() string {
	t.Helper()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		return func() string {
			text, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
	lines := bufio.NewScanner(res.Body)
	return func() string {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok && text != "" {
				return text
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return ""
	}
}

// modern sends a request of revision 2026-07-28, and returns the response.
func (c *client) modern(id, params, meta string) string {
	c.t.Helper()
	res := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},`+
		`"io.modelcontextprotocol/clientInfo":{"name":"ide","version":"3"},%s}}}`, id, params, meta),
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "ask", "traceparent", inHeader)
	defer res.Body.Close()
	return messages(c.t, res)()
}

// initialize opens a session of 2025-11-25.
func (c *client) initialize() {
	c.t.Helper()
	res := c.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"ide","version":"3"}}}`)
	c.session = res.Header.Get("Mcp-Session-Id")
	if text := messages(c.t, res)(); !strings.Contains(text, `"serverInfo"`) || c.session == "" {
		c.t.Fatalf("initialize: %d %s", res.StatusCode, text)
	}
	_ = res.Body.Close() // it was read
	c.notify(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// notify sends what has no response.
func (c *client) notify(body string) {
	c.t.Helper()
	res := c.post(body)
	defer res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		text, _ := io.ReadAll(res.Body)
		c.t.Fatalf("%s: %d %s", body, res.StatusCode, text)
	}
}
