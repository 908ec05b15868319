package interop

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestM2L07ToolsThatDemandTasks calls server-everything's tool that refuses to be
// called but as a task of 2025-11-25, as a client that knows nothing of tasks.
func TestM2L07ToolsThatDemandTasks(t *testing.T) {
	for _, server := range []string{"everything-stdio", "everything-http"} {
		t.Run(server, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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
