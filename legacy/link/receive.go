package link

import (
	"context"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// reading is how the messages of a server are read: what the Sink gets is its to keep.
var reading = upstream.Reading{Batches: true, Keep: true}

// throttle bounds how fast a reader of the session takes what nobody needs.
func (l *Link) throttle() *transport.Throttle {
	return &transport.Throttle{Busy: l.Calls.Busy, Done: l.done}
}

// Drop counts a message that reached nobody. what names its kind for the metrics.
func (l *Link) Drop(what string) { l.inbox.Drop(what) }

// Ignore counts a message that was not needed, though nothing was lost with it: a reader
// takes only so many of them a second.
func (l *Link) Ignore() { l.inbox.Ignore() }

// An inboxSink is the Link as the Sink of its Inbox.
type inboxSink struct{ l *Link }

// Receive implements [upstream.Sink].
func (s inboxSink) Receive(ctx context.Context, m *wire.Message, from *upstream.Call) {
	s.l.sink.Receive(ctx, m, from)
}

// Unclaimed implements [upstream.Sink].
func (inboxSink) Unclaimed(wire.ID, *wire.Error) bool { return false }

// TooLong implements [upstream.Sink]: it refuses a request that was too long.
func (s inboxSink) TooLong(ctx context.Context, id wire.ID, limit int) {
	s.l.SendLater(ctx, wire.AppendError(nil, id, wire.Errorf(spec.CodeInternal, "the request is of more than %d bytes, the limit; send less", limit)))
}

// unusable returns the error that a response is taken for which has come and can't be read,
// as err says; nil if none has come.
func (l *Link) unusable(method string, err error) *wire.Error {
	var unreadable *upstream.UnreadableError
	var long *transport.TooLongError
	if errors.As(err, &unreadable) || errors.As(err, &long) {
		return mcp.WireError(l.opts.ClientError(method, err))
	}
	return nil
}
