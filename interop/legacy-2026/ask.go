package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// elicit asks the user for one value of a JSON type, under name.
func elicit(ctx context.Context, ss *mcp.ServerSession, message, name, kind string) (any, error) {
	res, err := ss.Elicit(ctx, &mcp.ElicitParams{Message: message, RequestedSchema: map[string]any{
		"type":       "object",
		"properties": map[string]any{name: map[string]any{"type": kind}},
		"required":   []string{name},
	}})
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", name, err)
	}
	if res.Action != "accept" {
		return nil, fmt.Errorf("asking for %s: the answer is %s", name, res.Action)
	}
	return res.Content[name], nil
}

// sample has the client's model complete a prompt.
func sample(ctx context.Context, ss *mcp.ServerSession, prompt string, maxTokens int64) (string, error) {
	res, err := ss.CreateMessage(ctx, &mcp.CreateMessageParams{
		Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: prompt}}},
		MaxTokens: maxTokens,
	})
	if err != nil {
		return "", fmt.Errorf("sampling: %w", err)
	}
	t, ok := res.Content.(*mcp.TextContent)
	if !ok {
		return "", fmt.Errorf("sampling: got %T, want text", res.Content)
	}
	return t.Text, nil
}

// listRoots returns the URIs of the client's roots.
func listRoots(ctx context.Context, ss *mcp.ServerSession) (string, error) {
	res, err := ss.ListRoots(ctx, nil)
	if err != nil {
		return "", fmt.Errorf("listing roots: %w", err)
	}
	var uris []string
	for _, r := range res.Roots {
		uris = append(uris, r.URI)
	}
	return strings.Join(uris, ", "), nil
}

type (
	promptArgs struct {
		Prompt string `json:"prompt" jsonschema:"what the model shall complete"`
	}
	messageArgs struct {
		Message string `json:"message" jsonschema:"what the user shall be shown"`
	}
)

// addAskingTools adds the tools of the 2025-11-25 scenarios that ask the client.
func addAskingTools(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{Name: "test_sampling", Description: "asks the client's model"},
		func(ctx context.Context, r *mcp.CallToolRequest, a promptArgs) (*mcp.CallToolResult, any, error) {
			answer, err := sample(ctx, r.Session, a.Prompt, 100)
			return &mcp.CallToolResult{Content: text("the model says: %s", answer)}, nil, err
		})
	mcp.AddTool(s, &mcp.Tool{Name: "test_elicitation", Description: "asks the user"},
		func(ctx context.Context, r *mcp.CallToolRequest, a messageArgs) (*mcp.CallToolResult, any, error) {
			content, err := form(ctx, r, a.Message, map[string]any{
				"username": map[string]any{"type": "string", "description": "who you are"},
				"email":    map[string]any{"type": "string", "description": "where to reach you"},
			})
			return &mcp.CallToolResult{Content: content}, nil, err
		})
	addTool(s, "test_elicitation_sep1034_defaults", "asks with defaults", func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
		return form(ctx, r, "fields with defaults", fieldsWithDefaults)
	})
	addTool(s, "test_elicitation_sep1330_enums", "asks with enums", func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
		return form(ctx, r, "fields with choices", fieldsWithChoices)
	})
}

// form shows the user a form and returns what was entered.
func form(ctx context.Context, r *mcp.CallToolRequest, message string, fields map[string]any) ([]mcp.Content, error) {
	res, err := r.Session.Elicit(ctx, &mcp.ElicitParams{
		Message:         message,
		RequestedSchema: map[string]any{"type": "object", "properties": fields},
	})
	if err != nil {
		return nil, fmt.Errorf("asking: %w", err)
	}
	return text("action=%s, content=%v", res.Action, res.Content), nil
}

var fieldsWithDefaults = map[string]any{
	"name":     map[string]any{"type": "string", "default": "John Doe"},
	"age":      map[string]any{"type": "integer", "default": 30},
	"score":    map[string]any{"type": "number", "default": 95.5},
	"status":   map[string]any{"type": "string", "enum": []string{"active", "inactive", "pending"}, "default": "active"},
	"verified": map[string]any{"type": "boolean", "default": true},
}

var fieldsWithChoices = map[string]any{
	"untitledSingle": map[string]any{"type": "string", "enum": []string{"option1", "option2", "option3"}},
	"titledSingle":   map[string]any{"type": "string", "oneOf": titled},
	"legacyEnum":     map[string]any{"type": "string", "enum": []string{"opt1", "opt2", "opt3"}, "enumNames": []string{"One", "Two", "Three"}},
	"untitledMulti":  map[string]any{"type": "array", "items": map[string]any{"type": "string", "enum": []string{"option1", "option2", "option3"}}},
	"titledMulti":    map[string]any{"type": "array", "items": map[string]any{"anyOf": titled}},
}

var titled = []map[string]any{
	{"const": "value1", "title": "First"},
	{"const": "value2", "title": "Second"},
	{"const": "value3", "title": "Third"},
}
