package transport

import (
	"os"

	"golang.org/x/sys/unix"
)

// Unread returns the number of written bytes that the child has not read, and whether the
// system can tell, which it can also after the child's end.
func (c *Command) Unread() (n int, known bool) { return unread(c.stdin) }

// unread is Unread for either end of a pipe, or the reading one of a socket.
func unread(f *os.File) (n int, known bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) {
		var errno error
		n, errno = unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		known = errno == nil
	})
	return n, known && err == nil
}
