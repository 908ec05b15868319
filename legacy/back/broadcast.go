package back

import "sync/atomic"

// A broadcast wakes who waits for a change of something. Safe for concurrent use; the zero
// value is ready to use.
type broadcast struct {
	ch atomic.Pointer[chan struct{}] // nil if nobody waits
}

// changed returns a channel that is closed by the next fire. Who gets it before it looks at
// what may change misses nothing.
func (s *broadcast) changed() <-chan struct{} {
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
func (s *broadcast) fire() {
	if s.ch.Load() == nil {
		return // as for nearly every call
	}
	if ch := s.ch.Swap(nil); ch != nil {
		close(*ch)
	}
}
