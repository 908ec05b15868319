package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/internal/match"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// startBridgeOn starts an mcpbridge on servers, a part of a configuration, and
// returns its URL once it is ready.
func startBridgeOn(t *testing.T, servers string) (base string) {
	t.Helper()
	listen, admin, config := freeAddr(t), freeAddr(t), filepath.Join(t.TempDir(), "mcpbridge.yaml")
	text := fmt.Sprintf("listen: %s\nadmin: %s\nservers:\n%s", listen, admin, servers)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "http://"+admin+"/readyz", 200, nil, bridgeBinary, "serve", "-c", config)
	return "http://" + listen
}

// TestU03OldClientRound takes the client of 2024-11-05, which knows no other transport
// over HTTP, through the round on servers that speak 2026-07-28 alone.
func TestU03OldClientRound(t *testing.T) {
	base := startModern(t)
	legacyRounds(t, "../bin/oldsse-front.txt", []legacySpot{
		{name: "modern-go", base: base, paths: paths{"sse": "/sse/modern-go"}},
		{name: "modern-typescript", base: base, paths: paths{"sse": "/sse/modern-typescript"}},
	})
}

// TestU03OldServerRound takes clients of both eras through the round on a server that
// has nothing newer than HTTP+SSE, whether the configuration says so or it is found
// out.
func TestU03OldServerRound(t *testing.T) {
	port := freeAddr(t)
	_, number, _ := net.SplitHostPort(port)
	run(t, "http://"+port+"/", 0, []string{"PORT=" + number}, nodeBinary, everythingNode, "sse")
	url := "http://" + port + "/sse"
	base := startBridgeOn(t, fmt.Sprintf("  told: {url: %q, type: sse}\n  found: {url: %q}\n", url, url))
	m, err := loadMatrix()
	if err != nil {
		t.Fatal(err)
	}
	// In turn: what one client toggles would reach the other.
	t.Run("typescript", func(t *testing.T) {
		r := round{URL: base + "/mcp/told", Server: "everything-http", Revision: revision, dir: t.TempDir()}
		r.run(t, m, new(outcomes))
	})
	t.Run("go", func(t *testing.T) {
		goRoundOn(t, m, "everything-http", revision, &mcp.StreamableClientTransport{Endpoint: base + "/mcp/found"})
	})
	t.Run("legacy", func(t *testing.T) {
		legacyRounds(t, "../bin/oldsse-back.txt", []legacySpot{
			{name: "everything-sse", base: base, paths: paths{"sse": "/sse/found"}, impure: true},
		})
	})
}

// goRoundOn takes go-sdk's client through a column over another transport.
func goRoundOn(t *testing.T, m *Matrix, server, negotiated string, over mcp.Transport) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c, err := newGoClient(ctx, over)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	defer c.cs.Close()
	if got := c.cs.InitializeResult().ProtocolVersion; got != negotiated {
		t.Fatalf("the client negotiated %s, want %s", got, negotiated)
	}
	var o outcomes
	for _, f := range m.Features {
		steps, err := m.Servers[server].steps(f, "go", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if len(steps) > 0 {
			o.check(t, "go", server, f, c.cell(ctx, steps))
		}
	}
}

// TestU03NotebookOverHTTPSSE has both SDKs that know HTTP+SSE work on the notebook:
// go-sdk's probes for the modern revision first, and goes on when it is refused.
func TestU03NotebookOverHTTPSSE(t *testing.T) {
	base := startBridgeOn(t, "  notebook: {builtin: notebook}\n")
	const save = `{"name":"edit_note","arguments":{"name":"todo","text":"milk"}}`
	saved := map[string]any{"content": []any{map[string]any{"type": "text", "text": "saved"}}}
	note := map[string]any{"contents": []any{map[string]any{"uri": "note://todo", "text": "milk"}}}

	t.Run("typescript", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), answerTime)
		defer cancel()
		c := startRemote(t, "sdk-1.9.0", remote.Target{Transport: "sse", URL: base + "/sse", Capabilities: []byte(`{}`), Roots: []byte(`{"roots":[]}`)})
		if problem := match.Mismatch("", map[string]any{"protocolVersion": "2024-11-05", "serverInfo": map[string]any{"name": "notebook"}}, c.hello); problem != "" {
			t.Errorf("initialize: %s", problem)
		}
		for _, step := range []struct {
			method string
			params any
			want   any
		}{
			{"resources/subscribe", map[string]any{"uri": "note://todo"}, map[string]any{}},
			{"tools/call", json.RawMessage(save), saved},
			{"resources/read", map[string]any{"uri": "note://todo"}, note},
		} {
			got, err := c.Request(ctx, step.method, step.params)
			if err != nil {
				t.Fatalf("%s: %v", step.method, err)
			}
			if problem := match.Mismatch("", step.want, got); problem != "" {
				t.Errorf("%s: %s", step.method, problem)
			}
		}
		if uri, ok := c.Changed.Take(noticeTime); !ok || uri != "note://todo" {
			t.Errorf("the client heard of %q, want note://todo", uri)
		}
	})
	t.Run("go", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), answerTime)
		defer cancel()
		c, err := newGoClient(ctx, &mcp.SSEClientTransport{Endpoint: base + "/sse/notebook"})
		if err != nil {
			t.Fatalf("connecting: %v", err)
		}
		defer c.cs.Close()
		if got := c.cs.InitializeResult().ProtocolVersion; got != "2025-11-25" {
			t.Errorf("the client negotiated %s, want 2025-11-25", got)
		}
		for _, s := range []Step{
			{Op: "watch", URI: "note://todo", Trigger: &Step{Op: "call", Params: []byte(save), Want: saved}},
			{Op: "read", Params: []byte(`{"uri":"note://todo"}`), Want: note},
		} {
			if err := c.do(ctx, &s); err != nil {
				t.Errorf("%s: %v", s.Op, err)
			}
		}
	})
}

// TestU03GoServerOverHTTPSSE has a modern client call a tool of go-sdk's server over
// HTTP+SSE, which answers a POST in words where it knows no session.
func TestU03GoServerOverHTTPSSE(t *testing.T) {
	type in struct{ Name string }
	s := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, who in) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello " + who.Name}}}, nil, nil
	})
	up := httptest.NewServer(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(up.Close)
	base := startBridgeOn(t, fmt.Sprintf("  greeter: {url: %q}\n", up.URL+"/sse"))
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	defer cancel()
	c, err := newGoClient(ctx, &mcp.StreamableClientTransport{Endpoint: base + "/mcp/greeter"})
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	defer c.cs.Close()
	step := Step{Op: "call", Params: []byte(`{"name":"greet","arguments":{"Name":"ada"}}`), Want: map[string]any{"content": []any{map[string]any{"type": "text", "text": "hello ada"}}}}
	if err := c.do(ctx, &step); err != nil {
		t.Error(err)
	}
}
