package transport

import (
	"fmt"
	"time"
)

// A writeLock lets one writer at a time pass, for a while and as long as somebody
// may read. It is no mutex, since waiting for one does not end with the connection.
type writeLock struct {
	turn    chan struct{} // capacity 1: held by whoever writes
	timeout time.Duration // how long one may wait
	doing   string        // what it is for, in errors: "writing to server files"

	closing <-chan struct{} // closed when nobody wants to write any more
	gone    <-chan struct{} // closed when nobody reads any more; nil if that is not known
	goneErr func() error    // why; called once gone is closed
}

// acquire takes the token, unless the connection is over.
func (t *writeLock) acquire() error {
	switch {
	case isClosed(t.closing):
		return ErrClosed
	case isClosed(t.gone):
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

// late is the error of a write that took too long.
func (t *writeLock) late() error {
	return fmt.Errorf("%s: %w after %v", t.doing, ErrWriteTimeout, t.timeout)
}
