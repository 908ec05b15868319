//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package http1

// canPeek is false: isOpen can't look at an idle socket here. Only sending a request
// would show that the server has closed the connection, and not every request may be sent
// again. The http.Transport, which reads from idle connections, is the better choice.
const canPeek = false

func isOpen(uintptr) bool { return false }
