package back

import "github.com/mcpbridge/mcpbridge/internal/mcp"

// A notificationQueue contains notifications that wait for the caller of a call.
type notificationQueue struct {
	backlog  mcp.Backlog
	draining bool // a goroutine is passing notifications to the caller
}

// enqueue queues a notification for the caller, and reports whether it fits.
func (c *call) enqueue(method string, params []byte) bool {
	answered := c.IsSettled()
	c.mu.Lock()
	ok := !answered && !c.ended && c.notifications.backlog.Add(mcp.Notification{Method: method, Params: params})
	short := c.notifications.backlog.Short()
	c.mu.Unlock()
	if short {
		_ = c.notifications.backlog.Memory.Refuse() // counts and logs it
	}
	return ok
}

// drain passes the queued notifications to the caller, in order. If another goroutine
// already does, that one passes these too.
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
		n.More = c.notifications.backlog.Len() > 0
		c.mu.Unlock()
		// An error is ignored: if the client has left, ctx ends.
		_ = c.caller.Notify(c.ctx, n)
	}
}

// leftOut returns how many log messages the caller did not get.
func (c *call) leftOut() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.notifications.backlog.LeftOut()
}

// drainSoon starts drain for notifications that arrived on a stream which the goroutine
// serving the call does not read. end waits for it.
func (c *call) drainSoon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended && !c.notifications.draining {
		c.drains.Go(c.drain)
	}
}
