package transport

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// A writeLock lets one writer at a time write. Waiting for it ends with a time-out, with a
// context, or with the connection, unlike waiting for a mutex.
type writeLock struct {
	turn    chan struct{} // capacity 1: holds a token while a writer writes
	timeout time.Duration // of the wait; zero means none
	doing   string        // for errors: "writing to server files"

	closing <-chan struct{} // closed when the connection is closed here
	gone    <-chan struct{} // closed when the peer has ended; nil if unknown
	goneErr func() error    // why; called after gone is closed
}

// acquire takes the token, unless the connection or ctx has ended.
func (t *writeLock) acquire(ctx context.Context) error {
	switch {
	case wake.Closed(t.closing):
		return ErrClosed
	case wake.Closed(t.gone):
		return t.goneErr()
	case ctx.Err() != nil:
		return t.unwritten(ctx)
	}
	select {
	case t.turn <- struct{}{}:
		return nil
	default:
	}
	var late <-chan time.Time
	if t.timeout > 0 {
		timer := time.NewTimer(t.timeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-late:
		return t.late()
	case <-ctx.Done():
		return t.unwritten(ctx)
	case <-t.closing:
		return ErrClosed
	case <-t.gone:
		return t.goneErr()
	}
}

func (t *writeLock) release() { <-t.turn }

// aside runs a write on a goroutine, which has the caller's token until it ends, with the
// connection at the latest. aside returns nil if ctx ends before.
func (t *writeLock) aside(ctx context.Context, write func() error) error {
	written := make(chan error, 1)
	go func() {
		defer t.release()
		written <- write()
	}()
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return nil
	}
}

// late returns the error of a write that timed out.
func (t *writeLock) late() error {
	return fmt.Errorf("%s: %w after %v", t.doing, ErrWriteTimeout, t.timeout)
}

// unwritten returns the error of a write whose context ended before it began.
func (t *writeLock) unwritten(ctx context.Context) error {
	return fmt.Errorf("%s: %w: %w", t.doing, ErrUnwritten, context.Cause(ctx))
}
