package back

import (
	"context"
	"time"
)

// callInputs counts the input requests of a call.
type callInputs struct {
	open     int32     // input requests that the caller is handling
	blocking int32     // those of them that the server is assumed to wait for
	lastAt   time.Time // when the last of them arrived
	missing  []byte    // the capability that a refused one needed; nil if none was refused

	ctx    context.Context // see inputContext; nil until the first input request
	cancel context.CancelFunc
}

// inputContext returns a context that ends with the call, and with it the call's input
// requests.
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

// park records that the caller is about to handle an input request: until unpark, the
// call's time does not count. blocking says that the server does nothing else for the call
// in the meantime, and receivedAt is when the input request arrived. It reports false if
// the call has ended. After park, the caller calls withCaller.Done once the call's caller
// is not used any more.
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

// unpark records that the server got its response, or has cancelled the input request.
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

// A callStage is the stage of a call, as far as input requests without attribution matter.
type callStage uint8

const (
	stageEnded   callStage = iota // or it never requests input without attribution
	stageRunning                  // the server works on it
	stageParked                   // the server waits for a response to its input request
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

// mayHaveAsked reports whether a pending input request that arrived at the given time may
// belong to the call. It does not if the call has ended, or waits for the response to an
// earlier input request. Input requests of one burst can't be distinguished.
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

// beingAsked reports whether the caller is handling an input request.
func (c *call) beingAsked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inputs.open > 0
}

// noteMissing records that an input request was refused because the client lacks a
// capability.
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
