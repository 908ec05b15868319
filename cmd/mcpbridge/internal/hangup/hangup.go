// Package hangup answers one question: does a SIGHUP say that the terminal is gone, or that
// the configuration is to be read again?
package hangup

import (
	"os"
	"sync/atomic"
)

// Signals decides about each SIGHUP.
type Signals struct {
	got      chan os.Signal
	attached bool                   // the process had a terminal when it began
	reload   atomic.Pointer[func()] // nil as long as there is nothing to read again
	end      func()
}

// OnReload has reload called for each SIGHUP that does not say that the terminal is gone,
// until the returned function is called. It must not block. It may be called on nil.
func (s *Signals) OnReload(reload func()) (stop func()) {
	if s == nil {
		return func() {}
	}
	s.reload.Store(&reload)
	return func() { s.reload.Store(nil) }
}

// run never ends: a process has signals for as long as it lives.
func (s *Signals) run() {
	for range s.got {
		reload := s.reload.Load()
		if reload == nil || s.attached && !hasTerminal() {
			s.end()
			continue
		}
		(*reload)()
	}
}
