// Package wake has what goroutines wait for: signals of others, and pauses between retries.
package wake

// A Signal wakes the goroutine that receives from it. It stays set until it is received,
// even if it is sent more than once. Sending a nil Signal has no effect.
type Signal chan struct{}

// NewSignal returns a Signal that is not set.
func NewSignal() Signal { return make(Signal, 1) }

// Send sets the signal. It never blocks.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default: // it is set already
	}
}
