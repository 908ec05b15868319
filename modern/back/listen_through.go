package back

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// serveListen runs a client's own listen request. All notifications of its stream go to
// x, whatever they tell; the result is the server's word that the stream has ended. No
// time-out bounds it.
func (b *Back) serveListen(ctx context.Context, req *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &serving{b: b, req: req, x: x, listens: true}
	a, err := s.send(ctx, nil)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, b.clientError(req.Method, err)
	case a.Err != nil:
		return nil, b.upstreamError(req, a.TakeError())
	}
	defer a.Free()
	res := mcp.NewResult(upstream.Keep(a.Result), nil)
	res.Extra, res.Era = upstream.Keep(a.Extra), spec.Modern
	return res, nil
}
