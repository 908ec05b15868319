package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// A tasker has tools that run as tasks of 2025-11-25, those of node/tasks-server.mjs but quiz
// and ledger. The SDK says completed of a task whose result has isError, sets no interval, and
// does not say a task's id to its tool. It has no way for a task to ask: a question goes to the
// session's GET stream or pipe, says nothing of a task, and the status stays working. The context of
// a task ends with the request that made it, so that no tool here heeds it.
type tasker struct {
	s *server.MCPServer

	mu      sync.Mutex     // guards the field below
	entered map[string]int // how often slow_compute was, by its label
}

func newTasker() *server.MCPServer {
	t := &tasker{entered: make(map[string]int)}
	t.s = server.NewMCPServer("tasks-mcpgo", "1.2.1", server.WithToolCapabilities(false),
		server.WithTaskCapabilities(true, true, true), server.WithElicitation())
	t.s.AddTool(mcp.NewTool("greet", mcp.WithString("name", mcp.Required())), t.greet)
	t.s.AddTool(mcp.NewTool("tally", mcp.WithString("label", mcp.Required())), t.tally)
	optional, required := mcp.WithTaskSupport(mcp.TaskSupportOptional), mcp.WithTaskSupport(mcp.TaskSupportRequired)
	t.s.AddTool(mcp.NewTool("slow_compute", optional, mcp.WithNumber("seconds", mcp.Required()), mcp.WithString("label")), t.slow)
	t.s.AddTool(mcp.NewTool("own_id", required), t.own)
	t.s.AddTool(mcp.NewTool("failing_job", required), t.failing)
	t.s.AddTool(mcp.NewTool("protocol_error_job", required), t.broken)
	t.s.AddTool(mcp.NewTool("confirm_delete", required, mcp.WithString("filename", mcp.Required())), t.confirm)
	t.s.AddTool(mcp.NewTool("multi_input", required), t.two)
	return t.s
}

func (t *tasker) greet(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText(fmt.Sprintf("Hello, %s!", r.GetString("name", ""))), nil
}

func (t *tasker) tally(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.entered[r.GetString("label", "")]
	return mcp.NewToolResultStructured(map[string]int{"result": n}, fmt.Sprint(n)), nil
}

func (t *tasker) slow(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	seconds, label := r.GetFloat("seconds", 0), r.GetString("label", "")
	t.mu.Lock()
	t.entered[label]++
	t.mu.Unlock()
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	return mcp.NewToolResultText(fmt.Sprintf("computed %s in %g s", label, seconds)), nil
}

func (t *tasker) own(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText("not told"), nil
}

func (t *tasker) failing(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	time.Sleep(300 * time.Millisecond)
	return mcp.NewToolResultError("the job failed"), nil
}

func (t *tasker) broken(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return nil, errors.New("the job broke the protocol")
}

func (t *tasker) confirm(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	name := r.GetString("filename", "")
	said, err := t.ask(ctx, fmt.Sprintf("Delete %s?", name), "confirm", "boolean")
	if err != nil {
		return nil, err
	}
	if said == true {
		return mcp.NewToolResultText("deleted " + name), nil
	}
	return mcp.NewToolResultText("kept " + name), nil
}

func (t *tasker) two(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var name, right any
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() { name, errs[0] = t.ask(ctx, "What is its name?", "name", "string") })
	both.Go(func() { right, errs[1] = t.ask(ctx, "Is that right?", "confirm", "boolean") })
	both.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	confirmed := "False"
	if right == true {
		confirmed = "True"
	}
	return mcp.NewToolResultText(fmt.Sprintf("name %v, confirmed %s", name, confirmed)), nil
}

// ask returns the one property that it asks for, nil if the user refused.
func (t *tasker) ask(ctx context.Context, message, name, kind string) (any, error) {
	var r mcp.ElicitationRequest
	r.Params.Message = message
	r.Params.RequestedSchema = map[string]any{"type": "object", "properties": map[string]any{name: map[string]any{"type": kind}}, "required": []string{name}}
	res, err := t.s.RequestElicitation(context.WithoutCancel(ctx), r)
	if err != nil {
		return nil, err
	}
	content, _ := res.Content.(map[string]any) // none, if it was refused
	return content[name], nil
}
