package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addStatelessTools adds what the scenario server-stateless calls.
func addStatelessTools(s *mcp.Server) {
	addTool(s, "test_missing_capability", "asks the client's model, whatever the client declared", capital)
	addTool(s, "test_streaming_elicitation", "logs, reports progress, and asks the user", streamAndAsk)
	addTool(s, "test_logging_tool", "logs three messages", logThrice)
	c := &changes{server: s}
	addTool(s, "test_trigger_tool_change", "changes a tool", func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) {
		return text("changed: %s", c.changeTool()), nil
	})
	addTool(s, "test_trigger_prompt_change", "changes a prompt", func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) {
		return text("changed: %s", c.changePrompt()), nil
	})
}

func streamAndAsk(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
	if _, err := logThrice(ctx, r); err != nil {
		return nil, err
	}
	if _, err := progressThrice(ctx, r); err != nil {
		return nil, err
	}
	return greet(ctx, r)
}

// changes makes list changes: each gives an item of the list a new description,
// and adds it at first.
type changes struct {
	server         *mcp.Server
	tools, prompts atomic.Int64
}

func (c *changes) changeTool() string {
	description := fmt.Sprintf("version %d", c.tools.Add(1))
	addTool(c.server, "test_changing_tool", description, func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) {
		return text("%s", description), nil
	})
	return description
}

func (c *changes) changePrompt() string {
	description := fmt.Sprintf("version %d", c.prompts.Add(1))
	addPrompt(c.server, &mcp.Prompt{Name: "test_changing_prompt", Description: description}, func(context.Context, *mcp.GetPromptRequest) ([]mcp.Content, error) {
		return text("%s", description), nil
	})
	return description
}
