package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A board is the server's state: what it serves, in which version, and who
// listens.
type board struct {
	// Set by newBoard, read-only after.
	server  *mcp.Server
	ledger  *ledger
	listens *listens
	refuse  string // file of the URIs that nobody may listen to; may be empty

	// mu guards the fields below.
	mu       sync.Mutex
	versions map[string]int
	changes  map[string]int // of the lists, by kind
}

func newBoard(l *ledger, f flags) *board {
	b := &board{ledger: l, listens: new(listens), refuse: f.refuse, versions: make(map[string]int), changes: make(map[string]int)}
	b.server = mcp.NewServer(&mcp.Implementation{Name: "modern-go", Version: "1"}, &mcp.ServerOptions{
		Instructions:              "Touch a resource to see it change.",
		PageSize:                  f.page,
		SupportedProtocolVersions: []string{revision},
		CompletionHandler:         complete,
		// The SDK keeps the subscriptions; it offers them if there are handlers.
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
			c.TTLMs, c.CacheScope = int(f.ttl.Milliseconds()), "public"
		},
	})
	b.server.AddReceivingMiddleware(modernOnly, b.noteListen)
	b.server.AddSendingMiddleware(b.noteSent)
	for i := range f.items {
		uri := fmt.Sprintf("res://item/%03d", i)
		b.versions[uri] = max(l.former[uri], 1)
		b.server.AddResource(&mcp.Resource{URI: uri, Name: fmt.Sprintf("item %03d", i), MIMEType: "text/plain"}, b.read)
	}
	addContentTools(b.server)
	addFormTools(b.server)
	addRoundTools(b.server)
	b.addStatelessTools()
	addOddTools(b.server)
	b.addTools()
	if f.tool != "" {
		addConstant(b.server, f.tool)
	}
	b.addResources()
	addPrompts(b.server)
	return b
}

func complete(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	values := []string{}
	for _, v := range []string{"paris", "park", "party", "quay"} {
		if strings.HasPrefix(v, r.Params.Argument.Value) {
			values = append(values, v)
		}
	}
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values, Total: len(values)}}, nil
}

func (b *board) read(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	b.mu.Lock()
	version := b.versions[r.Params.URI]
	b.mu.Unlock()
	return contents("version " + strconv.Itoa(version)), nil
}

func contents(text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{MIMEType: "text/plain", Text: text}}}
}

// touch makes a new version of each URI, so many times, and tells of every one
// whoever listens.
func (b *board) touch(ctx context.Context, uris []string, times int) ([]entry, error) {
	for _, uri := range uris {
		if !b.has(uri) {
			return nil, fmt.Errorf("no such resource: %s", uri)
		}
	}
	var touched []entry
	for range max(times, 1) {
		for _, uri := range uris {
			// The version before the news of it: who reads on hearing sees it.
			b.mu.Lock()
			b.versions[uri]++
			version := b.versions[uri]
			b.mu.Unlock()
			touched = append(touched, b.ledger.add(entry{What: "touch", URI: uri, Version: version}))
			if err := b.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
				return touched, err
			}
		}
	}
	return touched, nil
}

func (b *board) has(uri string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.versions[uri] > 0
}

// refused returns those of uris that stand in the file of refusals.
func (b *board) refused(uris []string) ([]string, error) {
	if b.refuse == "" || len(uris) == 0 {
		return nil, nil
	}
	f, err := os.Open(b.refuse)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var found []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if uri := strings.TrimSpace(lines.Text()); slices.Contains(uris, uri) {
			found = append(found, uri)
		}
	}
	return found, lines.Err()
}

// changeList changes a list: it gives one item a new description, and adds it at
// first. The SDK tells whoever listens 10 ms later, once for changes in between.
func (b *board) changeList(kind string) error {
	b.mu.Lock()
	b.changes[kind]++
	description := fmt.Sprintf("version %d", b.changes[kind])
	b.mu.Unlock()
	b.ledger.add(entry{What: "change", Kind: kind})
	switch kind {
	case "tools":
		addTool(b.server, "changing_tool", description, func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) {
			return text("%s", description), nil
		})
	case "prompts":
		addPrompt(b.server, &mcp.Prompt{Name: "changing_prompt", Description: description}, text("%s", description))
	case "resources":
		b.server.AddResource(&mcp.Resource{URI: "res://changing", Name: "changing", Description: description},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return contents(description), nil
			})
	default:
		return fmt.Errorf("kind is %q, want tools, prompts or resources", kind)
	}
	return nil
}
