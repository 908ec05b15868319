package moderntest

import (
	"context"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Script is what stands behind a front: it serves as the test says,
// and grants every filter.
type Script struct {
	OnServe    func(ctx context.Context, req *exchange.Request, x exchange.Exchange) (*exchange.Result, error)
	OnDescribe func()               // called by Describe; may be nil
	Listened   chan *fanout.Mailbox // receives the mailbox of each stream
}

// Serve implements exchange.Handler.
func (s *Script) Serve(ctx context.Context, req *exchange.Request, x exchange.Exchange) (*exchange.Result, error) {
	return s.OnServe(ctx, req, x)
}

// Describe implements exchange.Describer.
func (s *Script) Describe(ctx context.Context, _ *exchange.Request) (*exchange.Description, error) {
	if s.OnDescribe != nil && ctx.Err() == nil {
		s.OnDescribe()
	}
	return &exchange.Description{Capabilities: []byte("{}"), ServerInfo: []byte(`{"name":"s","version":"1"}`)}, nil
}

// Listen implements exchange.Feed.
func (s *Script) Listen(_ context.Context, _ *exchange.Request, want exchange.Filter, mail *fanout.Mailbox) (exchange.Filter, func(), error) {
	s.Listened <- mail
	return want, func() {}, nil
}

// NewScript returns a script that answers each call with the name it calls.
func NewScript() *Script {
	return &Script{Listened: make(chan *fanout.Mailbox, 16), OnServe: func(_ context.Context, req *exchange.Request, _ exchange.Exchange) (*exchange.Result, error) {
		name, _ := wire.GetString(req.Params, "name")
		return exchange.NewResult(fmt.Appendf(nil, `{"content":[{"type":"text","text":%q}]}`, name), nil), nil
	}}
}

// ToolsChanged tells a stream that the tools have changed.
func ToolsChanged(mail *fanout.Mailbox) {
	mail.Put(fanout.Event{Topic: fanout.Topic{Scope: "s/0", Kind: fanout.ToolsListChanged}})
}
