package wake

import "context"

// Closed reports whether c is closed. Nothing must be sent to c.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Await waits until c is closed. If ctx ends first, it returns its cause.
func Await(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
