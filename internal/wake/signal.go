// Package wake has what goroutines wait for.
package wake

// A Signal wakes the goroutine that receives from it. It stays set until it is received,
// however often it is sent before. Nil is a signal of which nobody is told.
type Signal chan struct{}

// NewSignal returns a Signal that is not set.
func NewSignal() Signal { return make(Signal, 1) }

// Send sets the signal. It never blocks.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default: // it is set
	}
}
