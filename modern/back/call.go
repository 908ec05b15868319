package back

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/watch"
)

// A link sends requests to one server. Its methods are safe for concurrent use.
type link interface {
	// exchange sends the request c and returns the response. If there is none, the error
	// is an *upstream.Failure, or the cause with which ctx ended; then the server is told,
	// if it may be working on the request.
	exchange(ctx context.Context, c *upstreamCall) (upstream.Response, error)
	// bind returns a context for the exchanges of a servedRequest, which ends with ctx, and with the
	// link. It ends with cancel at the latest, which the caller calls.
	bind(ctx context.Context) (_ context.Context, cancel context.CancelCauseFunc)
	// listen sends the subscriptions/listen request c, and returns when the server has
	// acknowledged it, or has responded. A refusal is a *wire.Error. The stream outlives
	// ctx.
	listen(ctx context.Context, c *upstreamCall) (watch.Stream, error)
	// connected reports whether a command was ever running, whose exit or silence is
	// evidence of its era. It is always false for a URL.
	connected() bool
	// noise returns, after a semicolon, output of a command that is not a message.
	noise() string
	// close ends all that is open and waits for everything that the link started. ctx
	// bounds the wait for a graceful end.
	close(ctx context.Context) error
}

// An upstreamCall is a request as it is sent upstream. A client's request may take
// several.
type upstreamCall struct {
	upstream.Call
	frame  []byte
	scope  string         // the profile's
	parent *servedRequest // the client's request; nil for one of the gateway itself
	// noCancel says that the server may not know the request. Then it is not sent a
	// cancellation of it, which some servers don't survive.
	noCancel bool
	queue    *notificationQueue // nil unless on a shared connection
}

// listens reports whether it is a client's own listen request.
func (c *upstreamCall) listens() bool { return c.parent != nil && c.parent.listens }

// forCaller returns a notification of the call as its caller gets it, and whether the
// caller gets it. The notification does not alias m.
//
// Spec: 2026-07-28, basic/patterns/progress; server/utilities/logging.
func (c *upstreamCall) forCaller(m *wire.Message) (mcp.Notification, bool) {
	n := mcp.Notification{Method: m.Method, Params: m.Params}
	switch {
	case c.parent == nil, m.Method == spec.NotifyCancelled: // the id in it is none of the client's
		return n, false
	case c.parent.listens && m.Method == spec.NotifyProgress && c.parent.req.ProgressToken != nil:
		n.Params = wire.AppendEdited(nil, m.Params, wire.Edit{Name: spec.MetaProgressToken, Value: c.parent.req.ProgressToken})
		return n, true
	case c.parent.listens, c.parent.req.Era == spec.Modern && spec.UndefinedNotification(m.Method):
		n.Params = upstream.Keep(m.Params)
		return n, true
	}
	switch m.Method {
	case spec.NotifyProgress:
		if c.parent.req.ProgressToken == nil {
			return n, false
		}
		if !c.parent.clock.Advance(wire.Get(m.Params, "progress")) {
			c.parent.b.opts.Quirks.Met(quirks.ProgressOrder, "")
			return n, false
		}
		n.Params = wire.AppendEdited(nil, m.Params, wire.Edit{Name: spec.MetaProgressToken, Value: c.parent.req.ProgressToken})
		return n, true
	case spec.NotifyMessage:
		level, _ := wire.GetString(m.Params, "level")
		if !c.parent.level.Allows(spec.LogLevel(level)) {
			return n, false
		}
		n.Params = upstream.Keep(m.Params)
		return n, true
	}
	return n, false
}

// tokenOf returns the upstream id in the progress token of a notification.
func tokenOf(m *wire.Message) (int64, bool) {
	token, err := wire.ParseID(wire.Get(m.Params, spec.MetaProgressToken))
	if err != nil {
		return 0, false
	}
	return token.Int()
}
