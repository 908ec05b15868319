package back

import (
	"context"
	"time"
)

// callInputs is what is known of the inputs of a call's server.
type callInputs struct {
	open     int32     // inputs that are with the caller
	blocking int32     // of these, those that the server is taken to wait for
	lastAt   time.Time // when the last of them came
	missing  []byte    // the capability that a refused one needed; nil if none was

	ctx    context.Context // see inputContext; nil until somebody asks
	cancel context.CancelFunc
}

// inputContext returns a context that ends with the call: its pending inputs do, too.
func (c *call) inputContext() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inputs.ctx == nil {
		c.inputs.ctx, c.inputs.cancel = context.WithCancel(context.Background())
		if c.ended {
			c.inputs.cancel()
		}
	}
	return c.inputs.ctx
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
	c.withCaller.Add(1)
	if c.inputs.open++; c.inputs.open == 1 {
		c.clock.Pause()
	}
	if waits {
		c.inputs.blocking++
		c.inputs.lastAt = came
	}
	return true
}

// unpark says that the server has been answered, or does not want to be.
func (c *call) unpark(waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inputs.open--; c.inputs.open == 0 {
		c.clock.Resume()
	}
	if waits {
		c.inputs.blocking--
	}
}

// A callStage is what a call is at, as far as inputs without a name go.
type callStage uint8

const (
	stageEnded   callStage = iota // or never to be asked so
	stageRunning                  // the server is at work on it
	stageParked                   // its caller is asked: the server waits
)

func (c *call) stage() callStage {
	answered := c.IsSettled()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.sent.Load() || answered || c.ended || c.namesInputs.Load() || !c.mayBeAsked:
		return stageEnded
	case c.inputs.blocking == 0:
		return stageRunning
	}
	return stageParked
}

// mayHaveAsked reports whether the call can be that of an input which came at a
// time and was not answered yet: unless it has ended, or has asked since, or waits
// for the answer to an earlier one. What comes in one burst is not told
// apart.
func (c *call) mayHaveAsked(came time.Time) bool {
	switch c.stage() {
	case stageEnded:
		return false
	case stageParked:
		c.mu.Lock()
		defer c.mu.Unlock()
		return came.Sub(c.inputs.lastAt).Abs() <= burstWindow
	}
	return true
}

// beingAsked reports whether an input is with the caller.
func (c *call) beingAsked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inputs.open > 0
}

// noteMissing notes that an input was refused for want of a capability.
func (c *call) noteMissing(need []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inputs.missing == nil {
		c.inputs.missing = need
	}
}

func (c *call) missing() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inputs.missing
}
