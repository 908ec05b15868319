package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connect serves over HTTP and connects the SDK's own client.
func connect(t *testing.T, opts *mcp.ClientOptions, roots ...*mcp.Root) *mcp.ClientSession {
	hs := httptest.NewServer(handler(newServer()))
	t.Cleanup(func() { hs.CloseClientConnections(); hs.Close() })
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	c.AddRoots(roots...)
	cs, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: hs.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// answering is a client that fills in every form and completes every prompt.
func answering() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			content := make(map[string]any)
			for name, schema := range r.Params.RequestedSchema.(map[string]any)["properties"].(map[string]any) {
				content[name] = "my " + name
				if schema.(map[string]any)["type"] == "boolean" {
					content[name] = true
				}
			}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		},
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			prompt := r.Params.Messages[0].Content.(*mcp.TextContent).Text
			return &mcp.CreateMessageResult{Model: "m", Role: "assistant", Content: &mcp.TextContent{Text: "echo of " + prompt}}, nil
		},
	}
}

// call returns the text of a tool's content, and whether it is an error's.
func call(t *testing.T, cs *mcp.ClientSession, name string, args any) (string, bool) {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var lines []string
	for _, c := range res.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			lines = append(lines, c.Text)
		}
	}
	return strings.Join(lines, "\n"), res.IsError
}

// TestQuestions proves that each tool asks what it should, and works with what
// the client answers.
func TestQuestions(t *testing.T) {
	cs := connect(t, answering(), &mcp.Root{URI: "file:///home", Name: "home"})
	for _, tt := range []struct {
		tool string
		args any
		want string
	}{
		{"test_input_required_result_elicitation", nil, "Hello, my name!"},
		{"test_input_required_result_sampling", nil, "echo of What is the capital of France?"},
		{"test_input_required_result_list_roots", nil, "roots: file:///home"},
		{"test_input_required_result_request_state", nil, "state-ok: true"},
		{"test_input_required_result_tampered_state", nil, "state-ok: true"},
		{"test_input_required_result_multiple_inputs", nil, "echo of Generate a greeting my name has file:///home"},
		{"test_input_required_result_multi_round", nil, "my name likes my color"},
		{"test_input_required_result_capabilities", nil, "Hello, my name!\necho of What is the capital of France?\nroots: file:///home"},
		{"test_missing_capability", nil, "echo of What is the capital of France?"},
		{"test_streaming_elicitation", nil, "Hello, my name!"},
		{"test_sampling", map[string]any{"prompt": "p"}, "the model says: echo of p"},
		{"test_elicitation", map[string]any{"message": "m"}, "action=accept, content=map[email:my email username:my username]"},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			if got, isError := call(t, cs, tt.tool, tt.args); isError || got != tt.want {
				t.Errorf("%s = %q, error %v, want %q", tt.tool, got, isError, tt.want)
			}
		})
	}
	t.Run("prompt", func(t *testing.T) {
		res, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "test_input_required_result_prompt"})
		if err != nil {
			t.Fatal(err)
		}
		const want = "in the context of my context"
		if got := res.Messages[0].Content.(*mcp.TextContent).Text; got != want {
			t.Errorf("prompt = %q, want %q", got, want)
		}
	})
}

// TestTogether proves that the second question does not wait for the answer to
// the first.
func TestTogether(t *testing.T) {
	opts := answering()
	var absent atomic.Int32
	absent.Store(2)
	together := make(chan struct{})
	meet := func() error {
		if absent.Add(-1) == 0 {
			close(together)
		}
		select {
		case <-together:
			return nil
		case <-time.After(time.Minute):
			return errors.New("the other question did not come while this one was open")
		}
	}
	elicit, sample := opts.ElicitationHandler, opts.CreateMessageHandler
	opts.ElicitationHandler = func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		if err := meet(); err != nil {
			return nil, err
		}
		return elicit(ctx, r)
	}
	opts.CreateMessageHandler = func(ctx context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
		if err := meet(); err != nil {
			return nil, err
		}
		return sample(ctx, r)
	}
	cs := connect(t, opts)
	if got, isError := call(t, cs, "test_input_required_result_multiple_inputs", nil); isError {
		t.Errorf("multiple_inputs failed: %s", got)
	}
}

// TestUndeclared proves which tools ask a client that declared nothing, and
// that such a call fails.
func TestUndeclared(t *testing.T) {
	cs := connect(t, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	for _, tt := range []struct {
		tool, want string
		isError    bool
	}{
		{"test_missing_capability", "sampling", true},
		{"test_input_required_result_elicitation", "does not support elicitation", true},
		{"test_input_required_result_capabilities", "", false},
	} {
		got, isError := call(t, cs, tt.tool, nil)
		if isError != tt.isError || !strings.Contains(got, tt.want) {
			t.Errorf("%s = %q, error %v, want %q, error %v", tt.tool, got, isError, tt.want, tt.isError)
		}
	}
}

func TestDeclined(t *testing.T) {
	opts := answering()
	opts.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	if got, isError := call(t, connect(t, opts), "test_input_required_result_multi_round", nil); !isError || !strings.Contains(got, "decline") {
		t.Errorf("a declined question gave %q, error %v, want an error that says so", got, isError)
	}
}

// TestChanges proves that the triggers change the lists, and say so.
func TestChanges(t *testing.T) {
	changed := make(chan string, 10)
	opts := answering()
	opts.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { changed <- "tools" }
	opts.PromptListChangedHandler = func(context.Context, *mcp.PromptListChangedRequest) { changed <- "prompts" }
	cs := connect(t, opts)
	for _, tt := range []struct{ tool, list, want string }{
		{"test_trigger_tool_change", "tools", "version 1"},
		{"test_trigger_tool_change", "tools", "version 2"},
		{"test_trigger_prompt_change", "prompts", "version 1"},
	} {
		if got, _ := call(t, cs, tt.tool, nil); got != "changed: "+tt.want {
			t.Errorf("%s = %q, want %q", tt.tool, got, tt.want)
		}
		select {
		case got := <-changed:
			if got != tt.list {
				t.Errorf("%s changed the %s, want the %s", tt.tool, got, tt.list)
			}
		case <-time.After(time.Minute):
			t.Errorf("nobody told that the %s changed", tt.list)
		}
	}
	tools, err := cs.ListTools(t.Context(), nil)
	if err != nil || !slices.ContainsFunc(tools.Tools, func(t *mcp.Tool) bool { return t.Description == "version 2" }) {
		t.Errorf("the changed tool is not in the list: %v", err)
	}
}
