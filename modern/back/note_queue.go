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

// A noteQueue holds the notifications of a request on a shared connection for the goroutine
// that gives them to the caller.
type noteQueue struct {
	ctx  context.Context // the caller's: a queue is made and ends with its request
	room wake.Signal     // there are fewer notes than before

	// mu guards the fields below.
	mu      sync.Mutex
	notes   mcp.Backlog   // not yet given to the caller
	stalled time.Duration // that the connection was held up, less what the caller made good
}

func newNoteQueue(ctx context.Context) *noteQueue {
	return &noteQueue{ctx: ctx, room: wake.NewSignal()}
}

// enqueue makes a message wait for the caller and reports whether there was room.
func (c *upcall) enqueue(n mcp.Notification) bool {
	c.queue.mu.Lock()
	ok := !c.hasEnded() && c.queue.notes.Add(n)
	c.queue.mu.Unlock()
	if ok {
		c.Notice()
	}
	return ok
}

// offer is enqueue for a message that nothing can take the place of. It reports false if
// the caller has to take others first.
func (c *upcall) offer(n mcp.Notification) bool {
	c.queue.mu.Lock()
	ok := c.hasEnded() || c.queue.notes.Offer(n, maxStreamNotes, maxStreamBytes)
	c.queue.mu.Unlock()
	if ok {
		c.Notice()
	}
	return ok
}

func (c *upcall) hasEnded() bool {
	_, _, ended := c.Outcome()
	return ended
}

// Answered implements [upstream.Owner].
func (c *upcall) Answered(*upstream.Call, upstream.Response) {}

// Deliver implements [upstream.Owner]. It gives what waits to the caller, in order, as long
// as it is there: a server may send without a pause.
func (c *upcall) Deliver() {
	for c.queue.ctx.Err() == nil {
		n, ok := c.queue.next()
		if !ok {
			return
		}
		c.pass(c.queue.ctx, n)
	}
}

// next takes the message that has waited longest. It reports false if there is none.
func (q *noteQueue) next() (n mcp.Notification, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n, ok = q.notes.Next(); !ok {
		q.stalled = 0
		return n, false
	}
	q.stalled = max(0, q.stalled-worth(n))
	q.room.Send()
	return n, true
}
