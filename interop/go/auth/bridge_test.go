package auth

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A bridge is mcpbridge serve.
type bridge struct {
	base, admin string // http://…
	*process.Process
}

// newBridge starts mcpbridge with a configuration in which {base} stands for its address, and
// with more environment.
func newBridge(t testing.TB, config string, env ...string) *bridge {
	t.Helper()
	listen, admin := rig.FreeAddr(t), rig.FreeAddr(t)
	b := &bridge{base: "http://" + listen, admin: "http://" + admin}
	if strings.Contains(config, "\ntls:") {
		b.base = "https://" + listen
	}
	text := strings.ReplaceAll(config, "{base}", b.base)
	b.Process = programs.StartBridge(t, fmt.Sprintf("listen: %s\nadmin: %s\n%s", listen, admin, text), admin, env...)
	t.Cleanup(func() {
		if err := b.Stop(time.Minute); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("mcpbridge wrote:\n%s", b.Log())
		}
	})
	return b
}

func (b *bridge) endpoint(server string) string { return b.base + "/mcp/" + server }

// newServer starts modern-go, which serves anybody.
func newServer(t testing.TB) (url string) {
	t.Helper()
	addr := rig.FreeAddr(t)
	start(t, addr, nil, programs.Server, "-http", addr)
	return "http://" + addr
}

// protected is mcpbridge in front of modern-go, for those whom the issuer lets in.
func protected(t testing.TB, as *issuer, more ...string) *bridge {
	t.Helper()
	return newBridge(t, fmt.Sprintf(`
public_url: "{base}"
auth: {jwt: {issuer: %q, algorithms: [RS256], scopes: ["mcp:use"]}}
servers:
  modern:
    url: %q
%s`, as.url, newServer(t), strings.Join(more, "\n")))
}

// An answer is what came of one request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) challenge() string { return a.header.Get("WWW-Authenticate") }

// callTool calls a tool as a modern client does, with a token unless it is "".
func callTool(t testing.TB, url, token, tool string) *answer {
	t.Helper()
	return read(t, post(t, url, token, "tools/call", fmt.Sprintf(`"name":%q,"arguments":{},`, tool), "Mcp-Name", tool))
}

func read(t testing.TB, res *http.Response) *answer {
	t.Helper()
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &answer{res.StatusCode, res.Header, body}
}

// post sends a request as a modern client does. params are members, with a comma after each.
func post(t testing.TB, url, token, method, params string, headers ...string) *http.Response {
	t.Helper()
	res, err := send(t.Context(), url, token, method, params, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func send(ctx context.Context, url, token, method, params string, headers ...string) (*http.Response, error) {
	return sendBy(ctx, http.DefaultClient, url, token, method, params, headers...)
}

func sendBy(ctx context.Context, c *http.Client, url, token, method, params string, headers ...string) (*http.Response, error) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"interop","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, method, params)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	headers = append(headers, "Content-Type", "application/json", "Accept", "application/json, text/event-stream",
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method)
	if token != "" {
		headers = append(headers, "Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	return c.Do(req)
}

// listen opens a listen stream for changes of the list of tools, and returns a channel
// of its messages, which is closed when it ends.
func listen(t testing.TB, url, token string) <-chan map[string]any {
	t.Helper()
	res := post(t, url, token, "subscriptions/listen", `"notifications":{"toolsListChanged":true},`)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("listening: %s", res.Status)
	}
	messages := make(chan map[string]any, 16)
	go func() { // ends with the stream, or the test
		defer close(messages)
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var m map[string]any
				if json.Unmarshal([]byte(data), &m) == nil {
					messages <- m
				}
			}
		}
	}()
	return messages
}

// lastOf waits until a stream has ended, and returns its last message.
func lastOf(t testing.TB, messages <-chan map[string]any, most time.Duration) (last map[string]any) {
	t.Helper()
	late := time.After(most)
	for {
		select {
		case m, open := <-messages:
			if !open {
				return last
			}
			last = m
		case <-late:
			t.Fatalf("the stream has not ended after %v; its last message is %v", most, last)
		}
	}
}
