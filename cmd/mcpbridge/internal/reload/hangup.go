package reload

import (
	"os"
	"sync/atomic"
)

// Hangups decide about each SIGHUP: whether it says that the terminal is gone, or that the
// configuration is to be read again.
type Hangups struct {
	got      chan os.Signal
	attached bool                   // the process had a terminal when it began
	reload   atomic.Pointer[func()] // nil as long as there is nothing to read again
	end      func()
}

// OnReload has reload called for each SIGHUP that does not say that the terminal is gone,
// until the returned function is called. It must not block. It may be called on nil.
func (h *Hangups) OnReload(reload func()) (stop func()) {
	if h == nil {
		return func() {}
	}
	h.reload.Store(&reload)
	return func() { h.reload.Store(nil) }
}

// run never ends: a process has signals for as long as it lives.
func (h *Hangups) run() {
	for range h.got {
		reload := h.reload.Load()
		if reload == nil || h.attached && !hasTerminal() {
			h.end()
			continue
		}
		(*reload)()
	}
}
