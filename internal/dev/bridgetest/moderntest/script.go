package moderntest

import (
	"context"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Script is what stands behind a front: it serves as the test says,
// and grants every filter.
type Script struct {
	OnServe    func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (*mcp.Result, error)
	OnDescribe func()               // called by Describe; may be nil
	Listened   chan *fanout.Mailbox // receives the mailbox of each stream
}

// Serve implements mcp.Handler.
func (s *Script) Serve(ctx context.Context, req *mcp.Request, caller mcp.Caller) (*mcp.Result, error) {
	return s.OnServe(ctx, req, caller)
}

// Describe implements mcp.Describer.
func (s *Script) Describe(ctx context.Context, _ *mcp.Request) (*mcp.Description, error) {
	if s.OnDescribe != nil && ctx.Err() == nil {
		s.OnDescribe()
	}
	return &mcp.Description{Capabilities: []byte("{}"), ServerInfo: []byte(`{"name":"s","version":"1"}`)}, nil
}

// Subscribe implements mcp.Subscriber.
func (s *Script) Subscribe(_ *mcp.Request, mail *fanout.Mailbox, _ mcp.SubscribeOptions) (mcp.Subscription, error) {
	s.Listened <- mail
	return granted{}, nil
}

// granted is a Subscription that honors every filter.
type granted struct{}

func (granted) Add(_ context.Context, want mcp.Filter) (mcp.Filter, error) { return want, nil }
func (granted) Remove(...string)                                           {}
func (granted) Close()                                                     {}

// NewScript returns a script that answers each call with the name it calls.
func NewScript() *Script {
	return &Script{Listened: make(chan *fanout.Mailbox, 16), OnServe: func(_ context.Context, req *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
		name, _ := wire.GetString(req.Params, "name")
		return mcp.NewResult(fmt.Appendf(nil, `{"content":[{"type":"text","text":%q}]}`, name), nil), nil
	}}
}

// ToolsChanged tells a stream that the tools have changed.
func ToolsChanged(mail *fanout.Mailbox) {
	mail.Put(fanout.Event{Topic: fanout.Topic{Scope: "s/0", Kind: fanout.ToolsListChanged}})
}
