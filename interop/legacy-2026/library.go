package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addResources adds a text, a binary, one to subscribe to, and a template.
func addResources(s *mcp.Server) {
	for _, r := range []mcp.ResourceContents{
		{URI: "test://static-text", MIMEType: "text/plain", Text: "the text of a resource"},
		{URI: "test://static-binary", MIMEType: "image/png", Blob: dot()},
		{URI: "test://watched-resource", MIMEType: "text/plain", Text: "a resource to subscribe to"},
	} {
		name := strings.TrimPrefix(r.URI, "test://")
		s.AddResource(&mcp.Resource{Name: name, URI: r.URI, MIMEType: r.MIMEType}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&r}}, nil
		})
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data", MIMEType: "application/json"}, readTemplate)
}

func readTemplate(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{
		URI: r.Params.URI, MIMEType: "application/json", Text: fmt.Sprintf(`{"id": %q, "templateTest": true}`, id),
	}}}, nil
}

// A simplePrompt returns content, each block a message of the user.
type simplePrompt func(context.Context, *mcp.GetPromptRequest) ([]mcp.Content, error)

func addPrompt(s *mcp.Server, p *mcp.Prompt, get simplePrompt) {
	s.AddPrompt(p, func(ctx context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		content, err := get(ctx, r)
		if err != nil {
			return nil, err
		}
		res := &mcp.GetPromptResult{Description: p.Description}
		for _, c := range content {
			res.Messages = append(res.Messages, &mcp.PromptMessage{Role: "user", Content: c})
		}
		return res, nil
	})
}

func addPrompts(s *mcp.Server) {
	addPrompt(s, &mcp.Prompt{Name: "test_simple_prompt", Description: "one message"}, func(context.Context, *mcp.GetPromptRequest) ([]mcp.Content, error) {
		return text("a simple prompt"), nil
	})
	addPrompt(s, &mcp.Prompt{Name: "test_prompt_with_arguments", Description: "repeats its arguments", Arguments: []*mcp.PromptArgument{
		{Name: "arg1", Required: true}, {Name: "arg2", Required: true},
	}}, func(_ context.Context, r *mcp.GetPromptRequest) ([]mcp.Content, error) {
		return text("arg1=%s, arg2=%s", r.Params.Arguments["arg1"], r.Params.Arguments["arg2"]), nil
	})
	addPrompt(s, &mcp.Prompt{Name: "test_prompt_with_embedded_resource", Description: "embeds a resource", Arguments: []*mcp.PromptArgument{
		{Name: "resourceUri", Required: true},
	}}, func(_ context.Context, r *mcp.GetPromptRequest) ([]mcp.Content, error) {
		embedded := &mcp.ResourceContents{URI: r.Params.Arguments["resourceUri"], MIMEType: "text/plain", Text: "embedded text"}
		return append([]mcp.Content{&mcp.EmbeddedResource{Resource: embedded}}, text("mind the resource")...), nil
	})
	addPrompt(s, &mcp.Prompt{Name: "test_prompt_with_image", Description: "shows an image"}, func(context.Context, *mcp.GetPromptRequest) ([]mcp.Content, error) {
		return append([]mcp.Content{&mcp.ImageContent{Data: dot(), MIMEType: "image/png"}}, text("mind the image")...), nil
	})
	addPrompt(s, &mcp.Prompt{Name: "test_input_required_result_prompt", Description: "asks the user, and waits"}, promptInContext)
}

func promptInContext(ctx context.Context, r *mcp.GetPromptRequest) ([]mcp.Content, error) {
	answer, err := elicit(ctx, r.Session, "What context should the prompt use?", "context", "string")
	return text("in the context of %v", answer), err
}
