// Command client-mcpgo puts the client of mark3labs/mcp-go v1.2.1 under
// remote control: see package remote. It asks for 2026-07-28 first on pipes alone: with a GET
// stream, or without for the transport post, it opens sessions. With -tasks it plays with the tasks
// of a server instead.
//
// The SDK keeps no error's code: the few that it has a Go error for are told by
// that, the others are 0.
package main

//lint:file-ignore SA1019 what 2026-07-28 has no more, sessions of older revisions have

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcpbridge/mcpbridge/interop/remote"
)

func main() {
	legacy := flag.Bool("legacy", false, "open sessions, whatever the server knows")
	tasks := flag.Bool("tasks", false, "play with tasks of 2025-11-25")
	flag.Parse()
	if *tasks {
		if err := playTasks(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "client-mcpgo:", err)
			os.Exit(1)
		}
		return
	}
	ctl := remote.NewController(os.Stdout)
	if err := ctl.Run(os.Stdin, &steered{ctl: ctl, legacy: *legacy}); err != nil {
		fmt.Fprintln(os.Stderr, "client-mcpgo:", err)
		os.Exit(1)
	}
}

// A steered client runs commands on the one session that initialize opens.
type steered struct {
	ctl    *remote.Controller
	legacy bool
	c      *client.Client                      // set by initialize, which nothing else runs beside
	roots  atomic.Pointer[mcp.ListRootsResult] // set by initialize and by notifications/roots/list_changed

	mu   sync.Mutex // guards the field below
	stop func()     // ends the listen stream; nil without one
}

func (s *steered) Close() error {
	if s.c == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	return s.c.Close()
}

// Do implements [remote.Client].
func (s *steered) Do(ctx context.Context, cmd *remote.Command) (any, error) {
	res, err := s.do(ctx, cmd)
	for code, known := range map[int64]error{
		mcp.INVALID_REQUEST:    mcp.ErrInvalidRequest,
		mcp.METHOD_NOT_FOUND:   mcp.ErrMethodNotFound,
		mcp.INVALID_PARAMS:     mcp.ErrInvalidParams,
		mcp.INTERNAL_ERROR:     mcp.ErrInternalError,
		mcp.RESOURCE_NOT_FOUND: mcp.ErrResourceNotFound,
	} {
		if errors.Is(err, known) {
			return nil, &remote.Error{Code: code, Message: err.Error()}
		}
	}
	return res, err
}

func (s *steered) do(ctx context.Context, cmd *remote.Command) (any, error) {
	if cmd.Method == "initialize" {
		return s.initialize(ctx, cmd.Params)
	}
	switch cmd.Method {
	case "tools/list":
		r := mcp.ListToolsRequest{}
		return run(ctx, cmd, &r.Params, &r, s.c.ListToolsByPage)
	case "resources/list":
		r := mcp.ListResourcesRequest{}
		return run(ctx, cmd, &r.Params, &r, s.c.ListResourcesByPage)
	case "resources/templates/list":
		r := mcp.ListResourceTemplatesRequest{}
		return run(ctx, cmd, &r.Params, &r, s.c.ListResourceTemplatesByPage)
	case "prompts/list":
		r := mcp.ListPromptsRequest{}
		return run(ctx, cmd, &r.Params, &r, s.c.ListPromptsByPage)
	case "tools/call":
		r := mcp.CallToolRequest{}
		return run(ctx, cmd, &r.Params, &r, func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if cmd.Progress {
				r.Params.Meta = &mcp.Meta{ProgressToken: cmd.ID}
			}
			return s.c.CallTool(ctx, r)
		})
	case "resources/read":
		r := mcp.ReadResourceRequest{}
		return run(ctx, cmd, &r.Params, &r, s.c.ReadResource)
	case "prompts/get":
		r := mcp.GetPromptRequest{}
		return run(ctx, cmd, &r.Params, &r, s.c.GetPrompt)
	case "completion/complete":
		r := mcp.CompleteRequest{}
		return run(ctx, cmd, &r.Params, &r, s.c.Complete)
	case "logging/setLevel":
		r := mcp.SetLevelRequest{}
		return run(ctx, cmd, &r.Params, &r, quiet(s.c.SetLevel))
	case "resources/subscribe":
		r := mcp.SubscribeRequest{}
		return run(ctx, cmd, &r.Params, &r, quiet(listening(s, s.c.Subscribe)))
	case "resources/unsubscribe":
		r := mcp.UnsubscribeRequest{}
		return run(ctx, cmd, &r.Params, &r, quiet(listening(s, s.c.Unsubscribe)))
	case "ping":
		return struct{}{}, s.c.Ping(ctx)
	case "notifications/roots/list_changed":
		return struct{}{}, s.changeRoots(ctx, cmd.Params)
	}
	return nil, fmt.Errorf("unknown command %q", cmd.Method)
}

// run fills params, which lie in req, from the command, and runs the SDK's method.
func run[Q, R any](ctx context.Context, cmd *remote.Command, params any, req *Q, do func(context.Context, Q) (R, error)) (any, error) {
	if len(cmd.Params) > 0 {
		if err := json.Unmarshal(cmd.Params, params); err != nil {
			return nil, err
		}
	}
	return do(ctx, *req)
}

// quiet makes a method that returns an error alone one that returns a result too.
func quiet[Q any](do func(context.Context, Q) error) func(context.Context, Q) (struct{}, error) {
	return func(ctx context.Context, q Q) (struct{}, error) { return struct{}{}, do(ctx, q) }
}

// listening makes a method that says what is listened to one that also listens anew, where that is a
// stream.
func listening[Q any](s *steered, do func(context.Context, Q) error) func(context.Context, Q) error {
	return func(ctx context.Context, q Q) error { return errors.Join(do(ctx, q), s.listen(ctx)) }
}

// listen opens the one listen stream that the SDK has, for all lists and the resources that were
// subscribed to. In the older era there is none.
func (s *steered) listen(ctx context.Context) error {
	if !mcp.IsModernProtocol(s.c.ProtocolVersion()) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
	}
	filter := s.c.PendingSubscriptionFilter()
	filter.ToolsListChanged, filter.PromptsListChanged, filter.ResourcesListChanged = true, true, true
	var err error
	s.stop, err = s.c.ListenAsync(context.WithoutCancel(ctx), filter, nil)
	return err
}

func (s *steered) changeRoots(ctx context.Context, params json.RawMessage) error {
	if err := s.setRoots(params); err != nil {
		return err
	}
	return s.c.RootListChanges(ctx)
}

func (s *steered) setRoots(text json.RawMessage) error {
	roots := new(mcp.ListRootsResult)
	if len(text) > 0 {
		if err := json.Unmarshal(text, roots); err != nil {
			return err
		}
	}
	s.roots.Store(roots)
	return nil
}

func (s *steered) initialize(ctx context.Context, params json.RawMessage) (any, error) {
	var to remote.Target
	if err := json.Unmarshal(params, &to); err != nil {
		return nil, err
	}
	declared := make(map[string]json.RawMessage)
	if err := errors.Join(json.Unmarshal(to.Capabilities, &declared), s.setRoots(to.Roots)); err != nil {
		return nil, err
	}
	t, err := newTransport(&to)
	if err != nil {
		return nil, err
	}
	opts := []client.ClientOption{client.WithDiscoverTimeout(2 * time.Minute)} // what is started may take its time
	if to.Transport == "post" || s.legacy {                                    // post stands for sessions without a GET stream
		opts = append(opts, client.WithLegacyProtocolOnly())
	}
	if declared["sampling"] != nil {
		opts = append(opts, client.WithSamplingHandler(s))
	}
	if declared["elicitation"] != nil {
		opts = append(opts, client.WithElicitationHandler(s))
	}
	if declared["roots"] != nil {
		opts = append(opts, client.WithRootsHandler(s))
	}
	s.c = client.NewClient(t, opts...)
	s.c.OnNotification(s.notice)
	if err := s.c.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	req := mcp.InitializeRequest{}
	req.Params.ClientInfo = mcp.Implementation{Name: "interop-mcpgo", Version: "1"}
	res, err := s.c.Initialize(ctx, req)
	if err == nil {
		err = s.listen(ctx)
	}
	return res, err
}

func newTransport(to *remote.Target) (transport.Interface, error) {
	switch to.Transport {
	case "http":
		return transport.NewStreamableHTTP(to.URL, transport.WithContinuousListening())
	case "post":
		return transport.NewStreamableHTTP(to.URL)
	case "sse":
		return transport.NewSSE(to.URL)
	case "stdio":
		return transport.NewStdio(to.Argv[0], nil, to.Argv[1:]...), nil
	}
	return nil, fmt.Errorf("the SDK has no transport %q", to.Transport)
}

func (s *steered) notice(n mcp.JSONRPCNotification) {
	fields := n.Params.AdditionalFields
	var of float64
	if n.Method == "notifications/progress" {
		of, _ = fields["progressToken"].(float64)
		delete(fields, "progressToken")
	}
	s.ctl.Notice(n.Method, int(of), fields)
}

// CreateMessage implements [client.SamplingHandler].
func (s *steered) CreateMessage(ctx context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	return ask[mcp.CreateMessageResult](ctx, s.ctl, "sampling/createMessage", r.CreateMessageParams)
}

// Elicit implements [client.ElicitationHandler].
func (s *steered) Elicit(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return ask[mcp.ElicitationResult](ctx, s.ctl, "elicitation/create", r.Params)
}

// ListRoots implements [client.RootsHandler].
func (s *steered) ListRoots(context.Context, mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	return s.roots.Load(), nil
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
