// Command server-mcpgo is a server on mark3labs/mcp-go v1.2.1, of both eras: on standard input and output
// or, with -http ADDRESS, over Streamable HTTP at /mcp. With -tasks it has tools that run as tasks
// instead.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
	addr := flag.String("http", "", "the address to listen on")
	tasks := flag.Bool("tasks", false, "tools that run as tasks of 2025-11-25")
	flag.Parse()
	s := newTasker()
	if !*tasks {
		s = newMemos()
	}
	if err := serve(s, *addr); err != nil {
		fmt.Fprintln(os.Stderr, "server-mcpgo:", err)
		os.Exit(1)
	}
}

func newMemos() *server.MCPServer {
	s := server.NewMCPServer("server-mcpgo", "1.2.1", server.WithToolCapabilities(true), server.WithResourceCapabilities(true, true))
	s.AddTool(mcp.NewTool("add", mcp.WithNumber("a", mcp.Required()), mcp.WithNumber("b", mcp.Required())), add)
	s.AddTool(mcp.NewTool("nothing", mcp.WithDescription("Has no arguments, and says nothing.")), nothing)
	s.AddResource(mcp.NewResource("memo://today", "today", mcp.WithMIMEType("text/plain")), read)
	return s
}

func serve(s *server.MCPServer, addr string) error {
	if addr == "" {
		return server.ServeStdio(s)
	}
	return server.NewStreamableHTTPServer(s).Start(addr)
}

func add(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText(fmt.Sprintf("The sum is %v.", r.GetFloat("a", 0)+r.GetFloat("b", 0))), nil
}

func nothing(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{}, nil
}

func read(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: "memo://today", MIMEType: "text/plain", Text: "untouched"}}, nil
}
