//go:build !unix

package hangup

// Notify returns nil: there is no SIGHUP here.
func Notify(func()) *Signals { return nil }

func hasTerminal() bool { return false }
