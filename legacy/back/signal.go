package back

import "sync/atomic"

// A signal wakes who waits for a change of something. Safe for concurrent use; the zero
// value is ready to use.
type signal struct {
	ch atomic.Pointer[chan struct{}] // nil if nobody waits
}

// changed returns a channel that is closed by the next fire. Who gets it before it looks at
// what may change misses nothing.
func (s *signal) changed() <-chan struct{} {
	for {
		if ch := s.ch.Load(); ch != nil {
			return *ch
		}
		ch := make(chan struct{})
		if s.ch.CompareAndSwap(nil, &ch) {
			return ch
		}
	}
}

// fire wakes all, after the change.
func (s *signal) fire() {
	if s.ch.Load() == nil {
		return // as for nearly every call
	}
	if ch := s.ch.Swap(nil); ch != nil {
		close(*ch)
	}
}
