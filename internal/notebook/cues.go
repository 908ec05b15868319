package notebook

import (
	"slices"
	"sync"
)

// A cue tells a client to look again: at a list, or at the resource uri.
type cue struct{ method, uri string }

// cues are what a session has yet to be told. A cue that waits is not queued
// twice, so a session that does not read costs no more than it has
// subscriptions, and nobody waits for it.
type cues struct {
	ready chan struct{} // capacity 1: holds a token while there may be cues

	mu      sync.Mutex // guards the fields below
	open    bool       // the client is ready to be told
	order   []cue
	waiting map[cue]struct{}
}

// newCues returns cues that signal ready, which several may share.
func newCues(ready chan struct{}) *cues {
	return &cues{ready: ready, waiting: make(map[cue]struct{})}
}

// mark adds a cue unless it waits already. It never blocks.
func (c *cues) mark(q cue) {
	c.mu.Lock()
	_, waits := c.waiting[q]
	if !waits {
		c.waiting[q] = struct{}{}
		c.order = append(c.order, q)
	}
	open := c.open
	c.mu.Unlock()
	if open && !waits {
		c.signal()
	}
}

// release lets cues out; those marked before wait until then.
func (c *cues) release() {
	c.mu.Lock()
	c.open = true
	c.mu.Unlock()
	c.signal()
}

// drop takes a cue back that was not told yet.
func (c *cues) drop(q cue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, waits := c.waiting[q]; waits {
		delete(c.waiting, q)
		c.order = slices.DeleteFunc(c.order, func(o cue) bool { return o == q })
	}
}

// next removes the oldest cue.
func (c *cues) next() (q cue, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open || len(c.order) == 0 {
		return cue{}, false
	}
	q = c.order[0]
	c.order = c.order[1:]
	delete(c.waiting, q)
	return q, true
}

func (c *cues) signal() {
	select {
	case c.ready <- struct{}{}:
	default: // a token is there
	}
}
