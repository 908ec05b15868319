package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addResources adds a text, a binary, one to subscribe to, a template, and one
// that asks before it is read.
func (b *board) addResources() {
	for _, r := range []mcp.ResourceContents{
		{URI: "test://static-text", MIMEType: "text/plain", Text: "the text of a resource"},
		{URI: "test://static-binary", MIMEType: "image/png", Blob: dot()},
		{URI: "test://watched-resource", MIMEType: "text/plain", Text: "a resource to subscribe to"},
	} {
		b.versions[r.URI] = max(b.ledger.former[r.URI], 1)
		name := strings.TrimPrefix(r.URI, "test://")
		b.server.AddResource(&mcp.Resource{Name: name, URI: r.URI, MIMEType: r.MIMEType}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&r}}, nil
		})
	}
	b.server.AddResourceTemplate(&mcp.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data", MIMEType: "application/json"}, readTemplate)
	b.server.AddResource(&mcp.Resource{Name: "guarded", URI: "res://guarded", MIMEType: "text/plain"}, readGuarded)
	b.server.AddResource(&mcp.Resource{Name: "lost", URI: "res://lost", MIMEType: "text/plain"}, readLost)
}

func readTemplate(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
	data, err := json.Marshal(map[string]any{"id": id, "templateTest": true})
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{MIMEType: "application/json", Text: string(data)}}}, nil
}

// readGuarded asks who reads.
func readGuarded(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	t, err := once(whatName).take(r.Params.InputResponses, r.Params.RequestState)
	if err != nil {
		return nil, err
	}
	if t.answers == nil {
		return &mcp.ReadResourceResult{InputRequests: t.ask, RequestState: t.state}, nil
	}
	return contents("read by " + t.answers["user_name"]), nil
}

// readLost is listed and yet not there.
func readLost(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return nil, mcp.ResourceNotFoundError(r.Params.URI)
}

// addPrompt adds a prompt that is the same always, each block a message of the
// user.
func addPrompt(s *mcp.Server, p *mcp.Prompt, content []mcp.Content) {
	s.AddPrompt(p, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return messages(content...), nil
	})
}

func messages(content ...mcp.Content) *mcp.GetPromptResult {
	res := new(mcp.GetPromptResult)
	for _, c := range content {
		res.Messages = append(res.Messages, &mcp.PromptMessage{Role: "user", Content: c})
	}
	return res
}

func addPrompts(s *mcp.Server) {
	addPrompt(s, &mcp.Prompt{Name: "test_simple_prompt", Description: "one message"}, text("a simple prompt"))
	addPrompt(s, &mcp.Prompt{Name: "test_prompt_with_image", Description: "shows an image"}, append([]mcp.Content{picture()}, text("mind the image")...))
	s.AddPrompt(&mcp.Prompt{Name: "test_prompt_with_arguments", Description: "repeats its arguments", Arguments: []*mcp.PromptArgument{
		{Name: "arg1", Required: true}, {Name: "arg2", Required: true},
	}}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return messages(text("arg1=%s, arg2=%s", r.Params.Arguments["arg1"], r.Params.Arguments["arg2"])...), nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "test_prompt_with_embedded_resource", Description: "embeds a resource", Arguments: []*mcp.PromptArgument{
		{Name: "resourceUri", Required: true},
	}}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return messages(append([]mcp.Content{embedded(r.Params.Arguments["resourceUri"])}, text("mind the resource")...)...), nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "asks the user"}, promptInContext)
}

func promptInContext(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	d := once(form("user_context", "What context should the prompt use?", "context", "string"))
	t, err := d.take(r.Params.InputResponses, r.Params.RequestState)
	if err != nil {
		return nil, fmt.Errorf("asking for context: %w", err)
	}
	if t.answers == nil {
		return &mcp.GetPromptResult{InputRequests: t.ask, RequestState: t.state}, nil
	}
	return messages(text("in the context of %s", t.answers["user_context"])...), nil
}
