package transport

import "golang.org/x/sys/unix"

// Unread returns how many bytes that were written the child has not read, and whether
// the system tells. It tells after the child's end, too.
func (c *Command) Unread() (n int, known bool) {
	raw, err := c.stdin.SyscallConn()
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
