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
func (h *handler) Serve(ctx context.Context, req *mcp.Request, caller mcp.Caller) (*mcp.Result, error) {
	if req.Method == spec.MethodListen {
		return h.listen(ctx, req, caller)
	}
	if err := h.c.unwritten(req.Method); err != nil {
		return nil, err
	}
	q := request{c: h.c, sender: h.c.senderOf(req), method: req.Method}
	err := q.admit(req.Params, req.Extra, req.Plain)
	if err != nil {
		q.record(err)
		return nil, err
	}
	res, err := h.next.Serve(ctx, q.forServer(req), caller)
	q.ticket.Give()
	if err == nil {
		err = q.filter(res)
	}
	if err != nil {
		q.recordIn(ctx, err)
		return nil, err
	}
	if !q.begin.IsZero() {
		q.recordIn(ctx, failure(req.Method, res))
	}
	return res, nil
}

// failure returns the error that a result contains; nil if there is none.
func failure(method string, res *mcp.Result) error {
	if res.Failed(method) {
		return mcp.ErrToolFailed
	}
	return nil
}

// filter removes from a list what the client may not use, shows the rest by the names that
// clients see, and makes the result private. Of a result that has an error nothing is left.
func (q *request) filter(res *mcp.Result) error {
	if q.method == spec.MethodToolsCall {
		return nil // it is neither a list nor cacheable
	}
	body, changed, err := q.list(res.Body, res.Outline)
	if err != nil {
		res.Release()
		return err
	}
	if changed {
		res.Body, res.Outline = body, nil
	}
	if q.c.opts.Policy != nil && spec.Cacheable(q.method) {
		makePrivate(res)
	}
	return nil
}
