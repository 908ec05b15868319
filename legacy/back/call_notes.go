package back

import "github.com/mcpbridge/mcpbridge/internal/mcp"

// A notificationQueue is what the caller of a call is still to be told.
type notificationQueue struct {
	backlog  mcp.Backlog
	draining bool // somebody is giving notes to the caller
}

// enqueue queues a message for the caller and reports whether there was room.
func (c *call) enqueue(method string, params []byte) bool {
	answered := c.IsSettled()
	c.mu.Lock()
	ok := !answered && !c.ended && c.notifications.backlog.Add(mcp.Notification{Method: method, Params: params})
	short := c.notifications.backlog.Short()
	c.mu.Unlock()
	if short {
		_ = c.notifications.backlog.Memory.Refuse() // counted and logged; the message is lost, as others beyond the bound
	}
	return ok
}

// drain gives the queued notes to the caller, in order, unless somebody else is
// at it: then that one gives these too.
func (c *call) drain() {
	for first := true; ; first = false {
		c.mu.Lock()
		if first && c.notifications.draining || c.notifications.backlog.Len() == 0 {
			if !first {
				c.notifications.draining = false
			}
			c.mu.Unlock()
			return
		}
		c.notifications.draining = true
		n, _ := c.notifications.backlog.Next()
		c.mu.Unlock()
		// A caller that can't be reached is no reason to stop: ctx says so too.
		_ = c.caller.Notify(c.ctx, n)
	}
}

// drainSoon starts drain for notes that came on a stream which the goroutine
// serving the call does not read. It ends when the notes are given; end waits
// for it.
func (c *call) drainSoon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended && !c.notifications.draining {
		c.drains.Go(c.drain)
	}
}
