package page

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

const token = "the-admin-token-of-the-test"

// A world is mcpbridge with a legacy server that is a command, a modern one over HTTP, and
// one that is not there.
type world struct {
	base, admin string // http://…
	audit       string // a file
	file        string // the configuration
	config      string // its text
	*process.Process
}

// newWorld starts it, with more servers perhaps, which are lines of YAML.
func newWorld(t testing.TB, more ...string) *world {
	t.Helper()
	listen, admin, at := rig.FreeAddr(t), rig.FreeAddr(t), rig.FreeAddr(t)
	server, err := process.Start("modern-go", nil, modern, "-http", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	if err := server.Ready(t.Context(), "http://"+at+"/", 0); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w := &world{base: "http://" + listen, admin: "http://" + admin, audit: filepath.Join(dir, "audit.jsonl"), file: filepath.Join(dir, "config.yaml")}
	w.config = fmt.Sprintf(`
listen: %s
admin: %s
admin_token: %s
admin_bodies: true
remember: false
audit: %s
servers:
  legacy: {command: %s, env: {SOME_TOKEN: "the-secret-of-the-server"}}
  modern: {url: "http://%s/mcp", headers: {Authorization: "Bearer the-secret-of-the-url"}}
  gone: {url: "http://%s/mcp"}
`, listen, admin, token, w.audit, programs.Server, at, rig.FreeAddr(t)) + strings.Join(more, "")
	w.Process = programs.StartBridgeFile(t, w.file, w.config, admin)
	t.Cleanup(func() {
		if err := w.Stop(time.Minute); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("mcpbridge wrote:\n%s", w.Log())
		}
	})
	return w
}

// rewrite replaces parts of the configuration as it was at the start.
func (w *world) rewrite(t testing.TB, oldnew ...string) {
	t.Helper()
	if err := os.WriteFile(w.file, []byte(strings.NewReplacer(oldnew...).Replace(w.config)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// connect connects an SDK client of a revision.
func (w *world) connect(t testing.TB, server, revision, name string, asked func() string) *mcp.ClientSession {
	t.Helper()
	o := &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {},
		ResourceUpdatedHandler: func(context.Context, *mcp.ResourceUpdatedNotificationRequest) {},
	}
	if asked != nil {
		o.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"nonce": asked()}}, nil
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, o)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: w.base + "/mcp/" + server}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	return cs
}

// call calls a tool.
func call(t testing.TB, cs *mcp.ClientSession, tool string, args map[string]any) *mcp.CallToolResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("calling %s: %v", tool, err)
	}
	return res
}

// audited returns the lines of the audit log that have all of the words.
func (w *world) audited(t testing.TB, words ...string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(w.audit)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			lines = append(lines, line)
		}
	}
	return lines
}

// get reads what the admin address has at a path.
func (w *world) get(t testing.TB, path string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.admin+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", path, res.Status, err)
	}
}

// send posts a modern request with any tool, client name and arguments.
func (w *world) send(t testing.TB, server, method, params, client string) {
	t.Helper()
	name, _ := json.Marshal(client)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":%s,"version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, method, params, name)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.base+"/mcp/"+server, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", method)
	var named struct{ Name, URI string }
	if json.Unmarshal([]byte("{"+strings.TrimSuffix(params, ",")+"}"), &named) == nil && named.Name+named.URI != "" {
		req.Header.Set("Mcp-Name", encodedName(named.Name+named.URI))
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 500 {
		t.Logf("%s: %s", method, res.Status)
	}
	_, _ = io.Copy(io.Discard, res.Body)
}

// encodedName returns a name as the header has it.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Value Encoding.
func encodedName(name string) string { return name }

func subscribeTo(uri string) *mcp.SubscribeParams { return &mcp.SubscribeParams{URI: uri} }
