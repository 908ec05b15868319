package back

import (
	"context"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// Bounds of the messages that wait for the slow caller of a stream: how many, and together
// of how many bytes.
const (
	maxStreamNotes = 4096
	maxStreamBytes = 1 << 20
)

// A notificationQueue holds the notifications of a request on a shared connection for the goroutine
// that gives them to the caller.
type notificationQueue struct {
	ctx   context.Context // the caller's: a queue is made and ends with its request
	space wake.Signal     // there are fewer notes than before

	// mu guards the fields below.
	mu      sync.Mutex
	backlog mcp.Backlog   // not yet given to the caller
	stalled time.Duration // that the connection was held up, less what the caller made good
}

func newNotificationQueue(ctx context.Context) *notificationQueue {
	return &notificationQueue{ctx: ctx, space: wake.NewSignal()}
}

// enqueue makes a message wait for the caller and reports whether there was room.
func (c *upstreamCall) enqueue(n mcp.Notification) bool {
	c.queue.mu.Lock()
	ok := !c.hasEnded() && c.queue.backlog.Add(n)
	c.queue.mu.Unlock()
	if ok {
		c.Notice()
	}
	return ok
}

// offer is enqueue for a message that nothing can take the place of. It reports false if
// the caller has to take others first.
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

// Deliver implements [upstream.Owner]. It gives what waits to the caller, in order, as long
// as it is there: a server may send without a pause.
func (c *upstreamCall) Deliver() {
	for c.queue.ctx.Err() == nil {
		n, ok := c.queue.next()
		if !ok {
			return
		}
		c.notify(c.queue.ctx, n)
	}
}

// next takes the message that has waited longest. It reports false if there is none.
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
