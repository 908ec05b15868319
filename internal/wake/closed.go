package wake

import "context"

// Closed reports whether c was closed. Nothing is sent to c.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Await waits until c was closed, or until ctx ends, and returns its cause then.
func Await(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
