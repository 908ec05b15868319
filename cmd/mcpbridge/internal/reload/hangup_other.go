//go:build !unix

package reload

// CatchHangups returns nil: there is no SIGHUP here.
func CatchHangups(func()) *Hangups { return nil }

func hasTerminal() bool { return false }
