package wake

import "sync/atomic"

// A Broadcast wakes all goroutines that wait for a change. Safe for concurrent use; the
// zero value is ready to use.
type Broadcast struct {
	ch atomic.Pointer[chan struct{}] // nil if nobody waits
}

// Changed returns a channel that the next Fire closes. A goroutine that gets the channel
// before it checks for the change misses none.
func (s *Broadcast) Changed() <-chan struct{} {
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

// Fire wakes all waiting goroutines. Call it after the change.
func (s *Broadcast) Fire() {
	if s.ch.Load() == nil {
		return // the usual case
	}
	if ch := s.ch.Swap(nil); ch != nil {
		close(*ch)
	}
}
