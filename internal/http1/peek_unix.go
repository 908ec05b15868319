//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package http1

import "syscall"

// canPeek is true: isOpen works.
const canPeek = true

// isOpen reports whether the peer of an idle socket has neither closed it nor sent
// anything. The socket is in non-blocking mode.
func isOpen(fd uintptr) bool {
	var b [1]byte
	for {
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		if err != syscall.EINTR {
			return err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		}
	}
}
