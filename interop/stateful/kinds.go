package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// args are the arguments of all tools.
type args struct {
	URL   string `json:"url,omitempty"`
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
}

// tool makes a tool of a function that returns a text. An error becomes a tool's error.
func tool(do func(args) (string, error)) mcp.ToolHandlerFor[args, any] {
	return func(_ context.Context, _ *mcp.CallToolRequest, a args) (*mcp.CallToolResult, any, error) {
		text, err := do(a)
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	}
}

// addBrowser has the profile locked at the first page, not at the start.
func addBrowser(s *mcp.Server, dir string) (leave func() error) {
	var mu sync.Mutex // guards the two below
	page, opened := "about:blank", false
	mcp.AddTool(s, &mcp.Tool{Name: "navigate"}, tool(func(a args) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if !opened {
			taken, err := lock(filepath.Join(dir, "profile"))
			if err != nil {
				return "", err
			}
			if !taken {
				return "", fmt.Errorf("browser is already in use for %s, use --isolated to run several", dir)
			}
			opened = true
		}
		page = a.URL
		return "at " + page, nil
	}))
	mcp.AddTool(s, &mcp.Tool{Name: "snapshot"}, tool(func(args) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		return "page " + page, nil
	}))
	return func() error { time.Sleep(200 * time.Millisecond); return nil }
}

func addDatabase(s *mcp.Server, dir string, save time.Duration) (leave func() error, err error) {
	var mu sync.Mutex // guards entries
	entries := make(map[string]string)
	file := filepath.Join(dir, "entries.json")
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &entries)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	mcp.AddTool(s, &mcp.Tool{Name: "put"}, tool(func(a args) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		entries[a.Key] = a.Value
		return "put", nil
	}))
	mcp.AddTool(s, &mcp.Tool{Name: "get"}, tool(func(a args) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		return "value " + entries[a.Key], nil
	}))
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		text, err := json.Marshal(entries)
		if err != nil {
			return err
		}
		time.Sleep(save)
		if err := os.WriteFile(file+".new", text, 0o600); err != nil {
			return err
		}
		return os.Rename(file+".new", file)
	}, nil
}

const now = "tick://now"

func addTick(s *mcp.Server) {
	var mu sync.Mutex // guards count
	count := 0
	mcp.AddTool(s, &mcp.Tool{Name: "advance"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ args) (*mcp.CallToolResult, any, error) {
		mu.Lock()
		count++
		text := "count " + strconv.Itoa(count)
		mu.Unlock()
		err := s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: now})
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, err
	})
	s.AddResource(&mcp.Resource{URI: now, Name: "now", MIMEType: "text/plain"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			mu.Lock()
			defer mu.Unlock()
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
				{URI: now, MIMEType: "text/plain", Text: "count " + strconv.Itoa(count)},
			}}, nil
		})
}

// optionsOf has nobody listen for changes but those of tick: a listen stream keeps a process.
func optionsOf(kind string) *mcp.ServerOptions {
	if kind != "tick" {
		return &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}}
	}
	return &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	}
}
