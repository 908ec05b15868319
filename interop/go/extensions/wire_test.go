package extensions

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

const (
	modernRevision = "2026-07-28"
	legacyRevision = "2025-11-25"
)

// A wireClient sends requests over HTTP and keeps the bytes of what comes back.
type wireClient struct {
	t       *testing.T
	url     string
	session string // of a legacy client, if the server gave one
	legacy  bool
	hello   json.RawMessage // what the server answered to a legacy client's initialize
}

// newWireClient returns a client of an era; a legacy one has shaken hands.
func newWireClient(t *testing.T, url string, legacy bool) *wireClient {
	t.Helper()
	c := &wireClient{t: t, url: url, legacy: legacy}
	if legacy {
		c.hello = c.result("initialize", `"protocolVersion": "`+legacyRevision+`", "capabilities": {}, "clientInfo": {"name": "interop", "version": "1"}`, "")
		c.post(`{"jsonrpc": "2.0", "method": "notifications/initialized"}`, nil)
	}
	return c
}

// capabilities returns what the server declares.
func (c *wireClient) capabilities() json.RawMessage {
	c.t.Helper()
	if c.legacy {
		return member(c.t, c.hello, "capabilities")
	}
	return member(c.t, c.result("server/discover", "", ""), "capabilities")
}

// result sends a request with the members of params, and returns its result. name is
// for Mcp-Name.
func (c *wireClient) result(method, members, name string) json.RawMessage {
	c.t.Helper()
	answer := c.ask(method, members, name)
	var m struct{ Result, Error json.RawMessage }
	if err := json.Unmarshal(answer, &m); err != nil || m.Result == nil {
		c.t.Fatalf("%s was answered by %s: %v", method, answer, err)
	}
	return m.Result
}

// ask is result for what may be answered by an error: it returns the answer.
func (c *wireClient) ask(method, members, name string) []byte {
	c.t.Helper()
	header := http.Header{}
	if !c.legacy {
		header.Set("MCP-Protocol-Version", modernRevision)
		header.Set("Mcp-Method", method)
		if name != "" {
			header.Set("Mcp-Name", name)
		}
		if members != "" {
			members += ", "
		}
		members += `"_meta": {"io.modelcontextprotocol/protocolVersion": "` + modernRevision +
			`", "io.modelcontextprotocol/clientInfo": {"name": "interop", "version": "1"}, "io.modelcontextprotocol/clientCapabilities": {}}`
	}
	return c.post(fmt.Sprintf(`{"jsonrpc": "2.0", "id": 7, "method": %q, "params": {%s}}`, method, members), header)
}

// post returns the last message of the response.
func (c *wireClient) post(body string, header http.Header) []byte {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("MCP-Protocol-Version", legacyRevision)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	return lastMessage(c.t, res)
}

func lastMessage(t *testing.T, res *http.Response) []byte {
	t.Helper()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return text
	}
	var last []byte
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:")); ok && len(bytes.TrimSpace(data)) > 0 {
			last = bytes.Clone(bytes.TrimSpace(data))
		}
	}
	return last
}

// member returns a member of an object, by its path; a number is an index.
func member(t *testing.T, object json.RawMessage, path ...any) json.RawMessage {
	t.Helper()
	at := object
	for _, step := range path {
		var members map[string]json.RawMessage
		var elements []json.RawMessage
		switch step := step.(type) {
		case string:
			_ = json.Unmarshal(at, &members) // nothing is found in what is no object
			at = members[step]
		case int:
			if _ = json.Unmarshal(at, &elements); step >= len(elements) {
				t.Fatalf("%v is not in %s", path, object)
			}
			at = elements[step]
		}
		if at == nil {
			t.Fatalf("%v is not in %s", path, object)
		}
	}
	return at
}

// alike compares bytes.
func alike(t *testing.T, what string, got, want json.RawMessage) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %.500s\nwant, as directly, %.500s", what, got, want)
	}
}
