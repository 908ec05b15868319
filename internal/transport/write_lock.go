package transport

import (
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// A writeLock lets one writer at a time write. Waiting for it ends with a time-out or
// with the connection, unlike waiting for a mutex.
type writeLock struct {
	turn    chan struct{} // capacity 1: holds a token while a writer writes
	timeout time.Duration // of the wait
	doing   string        // for errors: "writing to server files"

	closing <-chan struct{} // closed when the connection is closed here
	gone    <-chan struct{} // closed when the peer has ended; nil if unknown
	goneErr func() error    // why; called after gone is closed
}

// acquire takes the token, unless the connection has ended.
func (t *writeLock) acquire() error {
	switch {
	case wake.Closed(t.closing):
		return ErrClosed
	case wake.Closed(t.gone):
		return t.goneErr()
	}
	select {
	case t.turn <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(t.timeout)
	defer timer.Stop()
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-timer.C:
		return t.late()
	case <-t.closing:
		return ErrClosed
	case <-t.gone:
		return t.goneErr()
	}
}

func (t *writeLock) release() { <-t.turn }

// late returns the error of a write that timed out.
func (t *writeLock) late() error {
	return fmt.Errorf("%s: %w after %v", t.doing, ErrWriteTimeout, t.timeout)
}
