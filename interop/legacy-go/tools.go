package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type (
	touchArgs struct {
		URI   string   `json:"uri,omitempty" jsonschema:"the resource to make a new version of"`
		URIs  []string `json:"uris,omitempty" jsonschema:"further ones"`
		Times int      `json:"times,omitempty" jsonschema:"how often; once if absent"`
	}
	changeArgs struct {
		Kind string `json:"kind" jsonschema:"tools, prompts or resources"`
	}
	ledgerArgs struct {
		After int `json:"after,omitempty" jsonschema:"leave out entries up to this sequence number"`
	}
	textArgs struct {
		Size int `json:"size" jsonschema:"bytes of text"`
	}
	noArgs struct{}

	entries struct {
		Entries []entry `json:"entries"`
	}
)

func (b *board) addTools() {
	mcp.AddTool(b.server, &mcp.Tool{Name: "touch", Description: "updates resources and tells their subscribers"},
		func(ctx context.Context, _ *mcp.CallToolRequest, a touchArgs) (*mcp.CallToolResult, entries, error) {
			if a.URI != "" {
				a.URIs = append([]string{a.URI}, a.URIs...)
			}
			touched, err := b.touch(ctx, a.URIs, a.Times)
			return nil, entries{touched}, err
		})
	mcp.AddTool(b.server, &mcp.Tool{Name: "change_lists", Description: "sends a list_changed notification"},
		func(_ context.Context, _ *mcp.CallToolRequest, a changeArgs) (*mcp.CallToolResult, any, error) {
			return nil, nil, b.changeList(a.Kind)
		})
	mcp.AddTool(b.server, &mcp.Tool{Name: "subscriptions", Description: "counts live subscriptions"},
		func(context.Context, *mcp.CallToolRequest, noArgs) (*mcp.CallToolResult, subscriptions, error) {
			return nil, b.subscriptions(), nil
		})
	mcp.AddTool(b.server, &mcp.Tool{Name: "ledger", Description: "tells what was sent"},
		func(_ context.Context, _ *mcp.CallToolRequest, a ledgerArgs) (*mcp.CallToolResult, entries, error) {
			return nil, entries{b.ledger.after(a.After)}, nil
		})
	b.addText()
	b.addMark()
	b.addWait()
	b.addAsk()
}

// addNamed adds a tool that does nothing, unless its name is empty.
func (b *board) addNamed(name string) {
	if name == "" {
		return
	}
	mcp.AddTool(b.server, &mcp.Tool{Name: name, Description: "does nothing"},
		func(context.Context, *mcp.CallToolRequest, noArgs) (*mcp.CallToolResult, any, error) {
			return nil, nil, nil
		})
}

func (b *board) addText() {
	mcp.AddTool(b.server, &mcp.Tool{Name: "text", Description: "returns a text of a given size"},
		func(_ context.Context, _ *mcp.CallToolRequest, a textArgs) (*mcp.CallToolResult, any, error) {
			const most = 64 << 20
			if a.Size < 0 || a.Size > most {
				return nil, nil, fmt.Errorf("size %d is not between 0 and %d", a.Size, most)
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", a.Size)}}}, nil, nil
		})
}

func (b *board) addPrompt() {
	b.server.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "hello"}}}}, nil
	})
}

// changeList makes the SDK say that a list has changed: it takes any addition for
// a change, so the lists keep their length.
func (b *board) changeList(kind string) error {
	switch kind {
	case "tools", "prompts", "resources":
		b.ledger.add(entry{What: "change", Kind: kind})
	default:
		return fmt.Errorf("kind %q is none of tools, prompts and resources", kind)
	}
	switch kind {
	case "tools":
		b.addText()
	case "prompts":
		b.addPrompt()
	case "resources":
		b.server.AddResource(&mcp.Resource{URI: itemURI(0), Name: "item 00", MIMEType: "text/plain"}, b.read)
	}
	return nil
}
