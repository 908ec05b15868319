package back

import (
	"context"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// maxStreamNotes bounds the messages that wait for the slow caller of a stream, and
	// maxStreamBytes their bytes together.
	maxStreamNotes = 4096
	maxStreamBytes = 1 << 20
)

// A notificationQueue contains the notifications of a request on a shared connection, for
// the goroutine that passes them to the caller.
type notificationQueue struct {
	ctx   context.Context // the caller's: a queue begins and ends with its request
	space wake.Signal     // a notification was removed

	// mu guards the fields below.
	mu      sync.Mutex
	backlog mcp.Backlog   // not yet passed to the caller
	stalled time.Duration // how long it has delayed the connection, less the allowance for what the caller has read
}

func newNotificationQueue(ctx context.Context) *notificationQueue {
	return &notificationQueue{ctx: ctx, space: wake.NewSignal()}
}

// enqueue queues a notification for the caller, and reports whether it fits.
func (c *upstreamCall) enqueue(n mcp.Notification) bool {
	c.queue.mu.Lock()
	ok := !c.hasEnded() && c.queue.backlog.Add(n)
	c.queue.mu.Unlock()
	if ok {
		c.Notice()
	}
	return ok
}

// offer is enqueue for a notification that later ones can't replace. It reports false if
// the caller has to read others first.
func (c *upstreamCall) offer(n mcp.Notification) bool {
	c.queue.mu.Lock()
	ok := c.hasEnded() || c.queue.backlog.Offer(n, maxStreamNotes, maxStreamBytes)
	c.queue.mu.Unlock()
	if ok {
		c.Notice()
	}
	return ok
}

func (c *upstreamCall) hasEnded() bool {
	_, _, ended := c.Outcome()
	return ended
}

// Answered implements [upstream.Owner].
func (c *upstreamCall) Answered(*upstream.Call, upstream.Response) {}

// Deliver implements [upstream.Owner]. It passes the queued notifications to the caller,
// in order, until the caller leaves, because a server may send without a pause.
func (c *upstreamCall) Deliver() {
	for c.queue.ctx.Err() == nil {
		n, ok := c.queue.next()
		if !ok {
			return
		}
		c.notify(c.queue.ctx, n)
	}
}

// next removes the oldest notification. It reports false if there is none.
func (q *notificationQueue) next() (n mcp.Notification, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n, ok = q.backlog.Next(); !ok {
		q.stalled = 0
		return n, false
	}
	q.stalled = max(0, q.stalled-readAllowance(n))
	q.space.Send()
	return n, true
}
