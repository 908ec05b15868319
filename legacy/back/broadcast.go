package back

import "sync/atomic"

// A broadcast wakes all goroutines that wait for a change. Safe for concurrent use; the
// zero value is ready to use.
type broadcast struct {
	ch atomic.Pointer[chan struct{}] // nil if nobody waits
}

// changed returns a channel that the next fire closes. A goroutine that gets the channel
// before it checks for the change misses none.
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

// fire wakes all waiting goroutines. Call it after the change.
func (s *broadcast) fire() {
	if s.ch.Load() == nil {
		return // the usual case
	}
	if ch := s.ch.Swap(nil); ch != nil {
		close(*ch)
	}
}
