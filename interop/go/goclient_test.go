package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/mcpbridge/interop/internal/match"
	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
)

// The bounds of one step: an answer, and a notification that must come.
// server-everything repeats its notifications every 5 s. They are long: the machine may be busy,
// and a server may have to be started for an answer.
const (
	answerTime = 3 * time.Minute
	noticeTime = time.Minute
	againTime  = 2 * time.Second
)

// A goClient is go-sdk's client on one server.
type goClient struct {
	cs       *mcp.ClientSession
	progress *steer.Inbox[any]
	messages *steer.Inbox[any]
	changed  *steer.Inbox[string] // "tools", "prompts", "resources", or the URI of a resource
}

// newGoClient connects over t. The client is left as the SDK makes it: modern
// first, with the capabilities it declares by default, and with handlers for
// everything, so that it opens its listen stream for the lists by itself.
func newGoClient(ctx context.Context, t mcp.Transport) (*goClient, error) {
	c := &goClient{
		progress: steer.NewInbox[any](),
		messages: steer.NewInbox[any](),
		changed:  steer.NewInbox[string](),
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "interop-go", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			c.progress.Put(match.Wire(r.Params))
		},
		//lint:ignore SA1019 deprecated in 2026-07-28, and still to be carried over
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			c.messages.Put(match.Wire(r.Params))
		},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { c.changed.Put("tools") },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { c.changed.Put("prompts") },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { c.changed.Put("resources") },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			c.changed.Put(r.Params.URI)
		},
	})
	var err error
	c.cs, err = client.Connect(ctx, t, nil)
	return c, err
}

// do takes one step and says what is wrong with what came of it.
func (c *goClient) do(ctx context.Context, s *Step) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	switch s.Op {
	case "discover":
		return s.judge(c.cs.InitializeResult(), nil)
	case "list":
		return c.list(ctx, s)
	case "pages":
		return c.pages(ctx, s)
	case "call":
		return c.call(ctx, s)
	case "watch":
		return c.watch(ctx, s)
	case "read":
		p := new(mcp.ReadResourceParams)
		return ask(ctx, s, p, c.cs.ReadResource)
	case "prompt":
		p := new(mcp.GetPromptParams)
		return ask(ctx, s, p, c.cs.GetPrompt)
	case "complete":
		p := new(mcp.CompleteParams)
		return ask(ctx, s, p, c.cs.Complete)
	}
	return fmt.Errorf("unknown op %q", s.Op)
}

// ask fills p from the step, asks, and judges the answer.
func ask[P, R any](ctx context.Context, s *Step, p P, do func(context.Context, P) (R, error)) error {
	if err := json.Unmarshal(s.Params, p); err != nil {
		return err
	}
	res, err := do(ctx, p)
	return s.judge(res, err)
}

// judge compares a result, or the error instead of one, with what is wanted.
func (s *Step) judge(res any, err error) error {
	if s.Error != nil {
		var e *jsonrpc.Error
		if !errors.As(err, &e) {
			return fmt.Errorf("got result %s and error %v, want a JSON-RPC error like %s", match.Brief(match.Wire(res)), err, match.Brief(s.Error))
		}
		return reject(match.Mismatch("error", s.Error, match.Wire(e)))
	}
	if err != nil {
		return err
	}
	return reject(match.Mismatch("result", s.Want, match.Wire(res)))
}

func reject(why string) error {
	if why == "" {
		return nil
	}
	return errors.New(why)
}

func (c *goClient) call(ctx context.Context, s *Step) error {
	p := new(mcp.CallToolParams)
	if err := json.Unmarshal(s.Params, p); err != nil {
		return err
	}
	c.progress.Clear()
	c.messages.Clear()
	if s.Log != "" {
		p.Meta = mcp.Meta{"io.modelcontextprotocol/logLevel": s.Log}
	}
	if s.Progress != nil {
		p.SetProgressToken("progress of " + p.Name)
	}
	res, err := c.cs.CallTool(ctx, p)
	return errors.Join(s.judge(res, err), c.progressed(s), c.logged(s))
}

// progressed checks the progress notifications of a call, which the SDK may
// hand over after the result.
func (c *goClient) progressed(s *Step) error {
	if s.Progress == nil {
		return nil
	}
	want := slices.Concat(s.Progress, s.Last)
	return reject(match.Mismatch("progress", want, c.progress.Collect(len(want))))
}

func (c *goClient) logged(s *Step) error {
	if s.Messages != nil {
		return reject(match.Mismatch("messages", s.Messages, c.messages.Collect(len(s.Messages))))
	}
	if s.Some != nil {
		return reject(match.Mismatch("messages", map[string]any{"$has": s.Some}, c.messages.Collect(len(s.Some))))
	}
	return nil
}

// list reads a whole list through the SDK's iterator, which follows the pages.
func (c *goClient) list(ctx context.Context, s *Step) error {
	var items []any
	var err error
	switch s.Of {
	case "tools":
		items, err = all(c.cs.Tools(ctx, nil))
	case "resources":
		items, err = all(c.cs.Resources(ctx, nil))
	case "resourceTemplates":
		items, err = all(c.cs.ResourceTemplates(ctx, nil))
	case "prompts":
		items, err = all(c.cs.Prompts(ctx, nil))
	default:
		return fmt.Errorf("unknown list %q", s.Of)
	}
	if err != nil {
		return err
	}
	if err := s.named(items); err != nil || s.Want == nil {
		return err
	}
	return reject(match.Mismatch(s.Of, s.Want, items))
}

func all[T any](seq func(yield func(T, error) bool)) ([]any, error) {
	items := []any{}
	for item, err := range seq {
		if err != nil {
			return nil, err
		}
		items = append(items, match.Wire(item))
	}
	return items, nil
}

// named checks that a list holds the items it should and no others. A tool that
// server-everything adds for clients that declare roots, as this one does, may
// be among them.
func (s *Step) named(items []any) error {
	if s.Count != 0 && len(items) != s.Count {
		return fmt.Errorf("there are %d %s, want %d", len(items), s.Of, s.Count)
	}
	if s.Names == nil {
		return nil
	}
	var got []string
	for _, item := range items {
		m := item.(map[string]any)
		for _, key := range []string{"uri", "uriTemplate", "name"} {
			if name, ok := m[key].(string); ok {
				got = append(got, name)
				break
			}
		}
	}
	got = slices.DeleteFunc(got, func(name string) bool { return name == "get-roots-list" })
	slices.Sort(got)
	want := slices.Sorted(slices.Values(s.Names))
	if !slices.Equal(got, want) {
		return fmt.Errorf("the %s are %q, want %q", s.Of, got, want)
	}
	return nil
}

// pages counts the pages of the list of tools or resources.
func (c *goClient) pages(ctx context.Context, s *Step) error {
	n := 0
	for cursor := ""; n == 0 || cursor != ""; n++ {
		switch s.Of {
		case "tools":
			res, err := c.cs.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			if err != nil {
				return err
			}
			cursor = res.NextCursor
		case "resources":
			res, err := c.cs.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
			if err != nil {
				return err
			}
			cursor = res.NextCursor
		default:
			return fmt.Errorf("unknown list %q", s.Of)
		}
	}
	if n != s.Pages {
		return fmt.Errorf("%s came in %d pages, want %d", s.Of, n, s.Pages)
	}
	return nil
}

// watch listens, makes the change happen, and waits to hear of it.
func (c *goClient) watch(ctx context.Context, s *Step) error {
	c.changed.Clear()
	want := s.Of // the client's own listen stream is open for the lists
	if s.URI != "" {
		want = s.URI
		if err := c.cs.Subscribe(ctx, &mcp.SubscribeParams{URI: s.URI}); err != nil {
			return fmt.Errorf("subscribing to %s: %w", s.URI, err)
		}
		defer c.cs.Unsubscribe(context.WithoutCancel(ctx), &mcp.UnsubscribeParams{URI: s.URI})
	}
	end := time.Now().Add(noticeTime)
	for try := 0; time.Now().Before(end); try++ {
		if s.Trigger != nil && (try == 0 || !s.Once) {
			if err := c.call(ctx, s.Trigger); err != nil {
				return fmt.Errorf("making a change: %w", err)
			}
		}
		for got, ok := c.changed.Take(againTime); ok; got, ok = c.changed.Take(againTime) {
			if got == want {
				return nil
			}
			if s.URI != "" && got != "tools" && got != "prompts" && got != "resources" {
				return fmt.Errorf("an update for %s arrived, subscribed was %s", got, want)
			}
		}
	}
	return fmt.Errorf("no change of %s within %v of making one", want, noticeTime)
}
