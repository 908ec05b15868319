//go:build unix

package reload

import (
	"os"
	"os/signal"
	"syscall"
)

// CatchHangups catches SIGHUP, and calls end for one that says that the terminal is gone, or that
// nobody reloads for. It returns nil for a process that was started to outlive its terminal,
// by nohup: SIGHUP stays ignored.
func CatchHangups(end func()) *Hangups {
	if signal.Ignored(syscall.SIGHUP) {
		return nil
	}
	// The signal may come twice, from the system and from the shell.
	h := &Hangups{got: make(chan os.Signal, 4), attached: hasTerminal(), end: end}
	signal.Notify(h.got, syscall.SIGHUP)
	go h.run() // ends with the process
	return h
}

// hasTerminal reports whether the process has a terminal that is still there. Of one that was
// closed the system takes it away before the signal is handled.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = tty.Close() // nothing was written
	return true
}
