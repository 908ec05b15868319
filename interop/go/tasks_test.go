package interop

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// TestM2L07ToolsThatDemandTasks calls server-everything's tool that refuses to be
// called but as a task of 2025-11-25, as a client that knows nothing of tasks.
func TestM2L07ToolsThatDemandTasks(t *testing.T) {
	for _, server := range []string{"everything-stdio", "everything-http"} {
		t.Run(server, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			var told atomic.Int32
			client := mcp.NewClient(&mcp.Implementation{Name: "researcher", Version: "1"}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { told.Add(1) },
			})
			cs, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: w.bridge.endpoint(server)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer cs.Close()
			params := &mcp.CallToolParams{Name: "simulate-research-query", Arguments: map[string]any{"topic": "bridges"}}
			params.SetProgressToken("research")
			res, err := cs.CallTool(ctx, params)
			if err != nil || res.IsError || len(res.Content) == 0 {
				t.Fatalf("CallTool = %+v, %v, want a report", res, err)
			}
			if text, ok := res.Content[0].(*mcp.TextContent); !ok || !strings.Contains(text.Text, "# Research Report: bridges") {
				t.Errorf("the report is %+v", res.Content[0])
			}
			if told.Load() == 0 {
				t.Error("no progress was told meanwhile")
			}
		})
	}
}

// TestT24ToolsOfFastmcpThatDemandTasks calls tools that fastmcp runs as tasks alone, with clients that
// know nothing of the tasks extension, of four revisions.
func TestT24ToolsOfFastmcpThatDemandTasks(t *testing.T) { callDemanding(t, "fastmcp") }

// TestT24ToolsOfRustThatDemandTasks calls those of a server on the Rust SDK.
func TestT24ToolsOfRustThatDemandTasks(t *testing.T) {
	if _, err := os.Stat(tasksRust); err != nil {
		t.Skip("no cargo has built it")
	}
	callDemanding(t, "tasks-rmcp")
}

func callDemanding(t *testing.T, server string) {
	for name, asks := range map[string]bool{"sdk-1.32.2": true, "sdk-1.12.3": false, "sdk-1.9.0": false, "go-1.6.1": true, "mcpgo": true} {
		t.Run(name, func(t *testing.T) {
			to := remote.Target{Transport: "http", URL: w.bridge.endpoint(server), Capabilities: json.RawMessage(`{}`)}
			if asks {
				to.Capabilities = json.RawMessage(`{"elicitation":{}}`)
			}
			if name == "sdk-1.9.0" {
				to.Transport, to.URL = "sse", strings.Replace(to.URL, "/mcp/", "/sse/", 1)
			}
			c := startRemote(t, name, to)
			call := func(tool, arguments string) string {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), answerTime)
				defer cancel()
				res, err := c.Request(ctx, "tools/call", json.RawMessage(`{"name":"`+tool+`","arguments":`+arguments+`}`))
				if err != nil {
					return "error: " + err.Error()
				}
				text, err := json.Marshal(res)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			want := func(got string, parts ...string) {
				t.Helper()
				for _, part := range parts {
					if !strings.Contains(got, part) {
						t.Errorf("the client was shown %s, want %s in it", got, part)
					}
				}
			}
			if got := call("own_id", `{}`); strings.HasPrefix(got, "error") || !strings.Contains(got, `"text":"`) {
				t.Errorf("own_id = %s, want the id of a task", got)
			}
			want(call("failing_job", `{}`), "the job failed", `"isError":true`)
			want(call("protocol_error_job", `{}`), "error: ", "the job broke the protocol")
			if !asks {
				want(call("confirm_delete", `{"filename":"a.txt"}`), "error: ", "elicitation")
				return
			}
			c.Expect(answer("elicitation/create", `{"action":"accept","content":{"confirm":true,"name":"Ada"}}`))
			want(call("confirm_delete", `{"filename":"a.txt"}`), "deleted a.txt")
			want(call("multi_input", `{}`), "name Ada, confirmed True")
			if n := len(c.Asked.Collect(3)); n != 3 {
				t.Errorf("the client was asked %d times, want 3", n)
			}
			c.Expect(answer("elicitation/create", `{"action":"decline"}`))
			want(call("confirm_delete", `{"filename":"b.txt"}`), "kept b.txt")
		})
	}
}
