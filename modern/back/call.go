package back

import (
	"context"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/watch"
)

// A link carries requests to one server. Its methods are safe for concurrent use.
type link interface {
	// exchange sends the request c and returns the response. Without one it returns
	// a *upstream.Failure, or the cause with which ctx ended; then the server has been told
	// if it may be at work.
	exchange(ctx context.Context, c *upstreamCall) (upstream.Response, error)
	// listen sends the subscriptions/listen request c and returns once the server
	// has acknowledged it, or has answered it. A refusal is a *wire.Error. The
	// stream outlives ctx.
	listen(ctx context.Context, c *upstreamCall) (watch.Stream, error)
	// connected reports whether there was ever a command, whose end or silence says
	// something of it; never of a URL.
	connected() bool
	// noise says, after a semicolon, what a command wrote that is no message.
	noise() string
	// close ends what the link holds open and joins what it started. ctx bounds
	// the politeness.
	close(ctx context.Context) error
}

// An upstreamCall is one request as it is sent: a client's request may take several.
type upstreamCall struct {
	upstream.Call
	frame  []byte
	header http.Header    // nil unless over HTTP
	scope  string         // the profile's
	parent *servedRequest // the client's request; nil for the gateway's own
	// noCancel says that the server may not know the request: it is not sent a cancellation
	// of it, which some servers don't survive.
	noCancel bool
	queue    *notificationQueue // nil unless it is on a shared connection
}

// listens reports whether it is a client's own listen request.
func (c *upstreamCall) listens() bool { return c.parent != nil && c.parent.listens }

// forCaller returns what the caller is told of a notification that belongs to the
// call, and whether it is told anything. It does not alias m.
//
// Spec: 2026-07-28, basic/patterns/progress; server/utilities/logging.
func (c *upstreamCall) forCaller(m *wire.Message) (mcp.Notification, bool) {
	n := mcp.Notification{Method: m.Method, Params: m.Params}
	switch {
	case c.parent == nil:
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
		if c.parent.req.ProgressToken == nil || !c.parent.clock.Advance(wire.Get(m.Params, "progress")) {
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

// tokenOf returns the upstream id that a progress notification names.
func tokenOf(m *wire.Message) (int64, bool) {
	token, err := wire.ParseID(wire.Get(m.Params, spec.MetaProgressToken))
	if err != nil {
		return 0, false
	}
	return token.Int()
}
