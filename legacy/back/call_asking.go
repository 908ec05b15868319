package back

import (
	"context"
	"time"
)

// asking is what is known of the inputs of a call's server.
type asking struct {
	open    int32     // inputs that are with the caller
	waits   int32     // of these, those that the server is taken to wait for
	last    time.Time // when the last of them came
	missing []byte    // the capability that a refused one needed; nil if none was

	life context.Context // see lifetime; nil until somebody asks
	die  context.CancelFunc
}

// lifetime returns a context that ends with the call: its pending inputs do, too.
func (c *call) lifetime() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking.life == nil {
		c.asking.life, c.asking.die = context.WithCancel(context.Background())
		if c.ended {
			c.asking.die()
		}
	}
	return c.asking.life
}

// park says that the caller is about to be asked: until unpark, the call's time
// does not count. waits says that the server does nothing for the call meanwhile,
// came when it asked.
// It reports false once the call has ended. Whoever parks a call has asks.Done
// called when caller is not used any more.
func (c *call) park(waits bool, came time.Time) bool {
	answered := c.IsSettled()
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered || c.ended {
		return false
	}
	c.asks.Add(1)
	if c.asking.open++; c.asking.open == 1 {
		c.clock.Pause()
	}
	if waits {
		c.asking.waits++
		c.asking.last = came
	}
	return true
}

// unpark says that the server has been answered, or does not want to be.
func (c *call) unpark(waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking.open--; c.asking.open == 0 {
		c.clock.Resume()
	}
	if waits {
		c.asking.waits--
	}
}

// A callStage is what a call is at, as far as inputs without a name go.
type callStage uint8

const (
	atEnd  callStage = iota // or never to be asked so
	atWork                  // the server is at work on it
	atRest                  // its caller is asked: the server waits
)

func (c *call) stage() callStage {
	answered := c.IsSettled()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.sent.Load() || answered || c.ended || c.named.Load() || !c.mayBeAsked:
		return atEnd
	case c.asking.waits == 0:
		return atWork
	}
	return atRest
}

// mayHaveAsked reports whether the call can be that of an input which came at a
// time and was not answered yet: unless it has ended, or has asked since, or waits
// for the answer to an earlier one. What comes in one burst is not told
// apart.
func (c *call) mayHaveAsked(came time.Time) bool {
	switch c.stage() {
	case atEnd:
		return false
	case atRest:
		c.mu.Lock()
		defer c.mu.Unlock()
		return came.Sub(c.asking.last).Abs() <= burstWindow
	}
	return true
}

// beingAsked reports whether an input is with the caller.
func (c *call) beingAsked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asking.open > 0
}

// lack notes that an input was refused for want of a capability.
func (c *call) lack(need []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking.missing == nil {
		c.asking.missing = need
	}
}

func (c *call) lacks() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asking.missing
}
