//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package http1

// canPeek: without a look at an idle socket a request would have to be sent to
// find out that nobody is there, and might not be sent again. http.Transport,
// whose idle connections have a reader, does better then.
const canPeek = false

func isOpen(uintptr) bool { return false }
