// Command client-go161 puts the client of go-sdk v1.6.1, which knows no modern
// revision, under remote control: see package remote. Built with
// -modfile v1.8.0.mod it is the client of v1.8.0, which asks for 2026-07-28 first.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/remote"
)

func main() {
	ctl := remote.NewController(os.Stdout)
	if err := ctl.Run(os.Stdin, &client{ctl: ctl}); err != nil {
		fmt.Fprintln(os.Stderr, "client-go161:", err)
		os.Exit(1)
	}
}

// A client runs commands on the one session that initialize opens.
type client struct {
	ctl *remote.Controller
	mcp *mcp.Client        // set by initialize, which nothing else runs beside
	cs  *mcp.ClientSession // likewise
}

func (c *client) Close() error {
	if c.cs == nil {
		return nil
	}
	return c.cs.Close()
}

// Do implements [remote.Client].
func (c *client) Do(ctx context.Context, cmd *remote.Command) (any, error) {
	res, err := c.do(ctx, cmd)
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return nil, &remote.Error{Code: e.Code, Message: e.Message, Data: e.Data}
	}
	return res, err
}

func (c *client) do(ctx context.Context, cmd *remote.Command) (any, error) {
	if cmd.Method == "initialize" {
		return c.initialize(ctx, cmd.Params)
	}
	switch cmd.Method {
	case "tools/list":
		return run(ctx, cmd, new(mcp.ListToolsParams), c.cs.ListTools)
	case "resources/list":
		return run(ctx, cmd, new(mcp.ListResourcesParams), c.cs.ListResources)
	case "resources/templates/list":
		return run(ctx, cmd, new(mcp.ListResourceTemplatesParams), c.cs.ListResourceTemplates)
	case "prompts/list":
		return run(ctx, cmd, new(mcp.ListPromptsParams), c.cs.ListPrompts)
	case "tools/call":
		return run(ctx, cmd, new(mcp.CallToolParams), c.cs.CallTool)
	case "resources/read":
		return run(ctx, cmd, new(mcp.ReadResourceParams), c.cs.ReadResource)
	case "prompts/get":
		return run(ctx, cmd, new(mcp.GetPromptParams), c.cs.GetPrompt)
	case "completion/complete":
		return run(ctx, cmd, new(mcp.CompleteParams), c.cs.Complete)
	case "logging/setLevel":
		return run(ctx, cmd, new(mcp.SetLoggingLevelParams), quiet(c.cs.SetLoggingLevel))
	case "resources/subscribe":
		return run(ctx, cmd, new(mcp.SubscribeParams), quiet(c.cs.Subscribe))
	case "resources/unsubscribe":
		return run(ctx, cmd, new(mcp.UnsubscribeParams), quiet(c.cs.Unsubscribe))
	case "ping":
		return run(ctx, cmd, new(mcp.PingParams), quiet(c.cs.Ping))
	case "notifications/roots/list_changed":
		return run(ctx, cmd, new(mcp.ListRootsResult), c.changeRoots)
	}
	return nil, fmt.Errorf("unknown command %q", cmd.Method)
}

// run fills p from the command and runs the SDK's method.
func run[P, R any](ctx context.Context, cmd *remote.Command, p P, do func(context.Context, P) (R, error)) (any, error) {
	if len(cmd.Params) > 0 {
		if err := json.Unmarshal(cmd.Params, p); err != nil {
			return nil, err
		}
	}
	if p, ok := any(p).(interface{ SetProgressToken(any) }); ok && cmd.Progress {
		p.SetProgressToken(cmd.ID)
	}
	return do(ctx, p)
}

// quiet makes a method that returns an error alone one that returns a result too.
func quiet[P any](do func(context.Context, P) error) func(context.Context, P) (struct{}, error) {
	return func(ctx context.Context, p P) (struct{}, error) { return struct{}{}, do(ctx, p) }
}

// changeRoots sets the roots; the SDK tells the server, and answers it.
func (c *client) changeRoots(_ context.Context, want *mcp.ListRootsResult) (struct{}, error) {
	c.mcp.AddRoots(want.Roots...)
	return struct{}{}, nil
}

func (c *client) initialize(ctx context.Context, params json.RawMessage) (any, error) {
	var to remote.Target
	if err := json.Unmarshal(params, &to); err != nil {
		return nil, err
	}
	opts, err := c.options(to.Capabilities)
	if err != nil {
		return nil, err
	}
	t, err := transport(&to)
	if err != nil {
		return nil, err
	}
	c.mcp = mcp.NewClient(&mcp.Implementation{Name: "interop-go", Version: "1"}, opts)
	roots := new(mcp.ListRootsResult)
	if len(to.Roots) > 0 {
		if err := json.Unmarshal(to.Roots, roots); err != nil {
			return nil, err
		}
	}
	c.mcp.AddRoots(roots.Roots...)
	if c.cs, err = c.mcp.Connect(context.WithoutCancel(ctx), t, nil); err != nil {
		return nil, err
	}
	return c.cs.InitializeResult(), nil
}

func transport(to *remote.Target) (mcp.Transport, error) {
	switch to.Transport {
	case "http":
		return streamable(to)
	case "sse":
		return &mcp.SSEClientTransport{Endpoint: to.URL}, nil
	case "stdio":
		cmd := exec.Command(to.Argv[0], to.Argv[1:]...)
		cmd.Stderr = os.Stderr
		// On a busy machine an interpreter takes more than the SDK's 5 s to end.
		return &mcp.CommandTransport{Command: cmd, TerminateDuration: 30 * time.Second}, nil
	}
	return nil, fmt.Errorf("the SDK has no transport %q", to.Transport)
}

// options has handlers for all that a server may send, and for those questions
// that the client declares.
func (c *client) options(capabilities json.RawMessage) (*mcp.ClientOptions, error) {
	declared := struct {
		Roots       *mcp.RootCapabilities
		Sampling    *mcp.SamplingCapabilities
		Elicitation *mcp.ElicitationCapabilities
	}{}
	if err := json.Unmarshal(capabilities, &declared); err != nil {
		return nil, err
	}
	opts := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{RootsV2: declared.Roots, Sampling: declared.Sampling, Elicitation: declared.Elicitation},
	}
	if declared.Sampling != nil {
		opts.CreateMessageHandler = func(ctx context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return ask[mcp.CreateMessageResult](ctx, c.ctl, "sampling/createMessage", r.Params)
		}
	}
	if declared.Elicitation != nil {
		opts.ElicitationHandler = func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return ask[mcp.ElicitResult](ctx, c.ctl, "elicitation/create", r.Params)
		}
	}
	c.notices(opts)
	return opts, nil
}

func (c *client) notices(opts *mcp.ClientOptions) {
	opts.ProgressNotificationHandler = func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		of, _ := r.Params.ProgressToken.(float64)
		r.Params.ProgressToken = nil
		c.ctl.Notice("notifications/progress", int(of), r.Params)
	}
	opts.LoggingMessageHandler = func(_ context.Context, r *mcp.LoggingMessageRequest) {
		c.ctl.Notice("notifications/message", 0, r.Params)
	}
	opts.ResourceUpdatedHandler = func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
		c.ctl.Notice("notifications/resources/updated", 0, r.Params)
	}
	opts.ToolListChangedHandler = func(_ context.Context, r *mcp.ToolListChangedRequest) {
		c.ctl.Notice("notifications/tools/list_changed", 0, r.Params)
	}
	opts.PromptListChangedHandler = func(_ context.Context, r *mcp.PromptListChangedRequest) {
		c.ctl.Notice("notifications/prompts/list_changed", 0, r.Params)
	}
	opts.ResourceListChangedHandler = func(_ context.Context, r *mcp.ResourceListChangedRequest) {
		c.ctl.Notice("notifications/resources/list_changed", 0, r.Params)
	}
}

// ask lets the test answer a question of the server.
func ask[R any](ctx context.Context, ctl *remote.Controller, method string, params any) (*R, error) {
	text, err := ctl.Ask(ctx, method, params)
	if err != nil {
		return nil, err
	}
	res := new(R)
	return res, json.Unmarshal(text, res)
}
