package transport

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// limitUnacknowledged has a connection fail if sent data stays unacknowledged; the kernel
// itself would send it again for a quarter of an hour. It has no effect on other sockets.
//
// Spec: RFC 5482.
func limitUnacknowledged(network, _ string, raw syscall.RawConn) error {
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return nil
	}
	return raw.Control(func(fd uintptr) {
		// Without it, the kernel's own limit remains.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(vanished.Milliseconds()))
	})
}
