package link

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// reading says how messages of a server are read: the Sink may keep what it gets.
var reading = upstream.Reading{Batches: true, Keep: true}

// Drop counts a message that was not delivered. what is its kind in the metrics.
func (l *Link) Drop(what string) { l.inbox.Drop(what) }

// Ignore counts a message that had no effect, though nothing was lost with it. A reader
// accepts only a limited number of them per second.
func (l *Link) Ignore() { l.inbox.Ignore() }

// An inboxSink is the Sink of a Link's Inbox.
type inboxSink struct{ l *Link }

// Receive implements [upstream.Sink].
func (s inboxSink) Receive(ctx context.Context, m *wire.Message, from *upstream.Call) {
	s.l.sink.Receive(ctx, m, from)
}

// Unclaimed implements [upstream.Sink].
func (s inboxSink) Unclaimed(id wire.ID, _ *wire.Error) bool {
	s.l.aftermath.cameLate(id)
	return false
}

// TooLong implements [upstream.Sink]: it refuses a request that is too long.
func (s inboxSink) TooLong(ctx context.Context, id wire.ID, limit int) {
	s.l.SendLater(ctx, wire.AppendError(nil, id, wire.Errorf(spec.CodeInternal, "the request has more than %d bytes, the limit; send less", limit)))
}
