package access

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Handler returns a Handler that controls the access to next, or next itself if there is
// nothing to control.
func (c *Control) Handler(next mcp.Handler) mcp.Handler {
	if c == nil {
		return next
	}
	return &handler{c, next}
}

type handler struct {
	c    *Control
	next mcp.Handler
}

// Serve implements [mcp.Handler].
func (h *handler) Serve(ctx context.Context, req *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
	if req.Method == spec.MethodListen {
		return h.listen(ctx, req, x)
	}
	v := visit{c: h.c, sender: senderOf(req), method: req.Method}
	err := v.admit(req.Params, req.Extra, req.Plain)
	if err != nil {
		v.record(err)
		return nil, err
	}
	res, err := h.next.Serve(ctx, req, x)
	v.ticket.Give()
	if err != nil {
		v.recordIn(ctx, err)
		return nil, err
	}
	v.filter(res)
	if !v.begin.IsZero() {
		v.recordIn(ctx, failure(req.Method, res))
	}
	return res, nil
}

// failure returns the error that a result contains; nil if there is none.
func failure(method string, res *mcp.Result) error {
	if mcp.ToolFailed(method, res.Body, res.Outline) {
		return mcp.ErrToolFailed
	}
	return nil
}

// filter removes from a list what the client may not use, and makes the result private.
func (v *visit) filter(res *mcp.Result) {
	if v.method == spec.MethodToolsCall {
		return // it is neither a list nor cacheable
	}
	if body, changed := v.list(res.Body, res.Outline); changed {
		res.Body, res.Outline = body, nil
	}
	if v.c.opts.Policy != nil && spec.Cacheable(v.method) {
		makePrivate(res)
	}
}
