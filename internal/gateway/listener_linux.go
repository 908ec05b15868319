package gateway

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout bounds how long sent data may stay unacknowledged, a peer's
// window of zero included, before the connection is reset. Where nothing is
// sent a probe goes out now and then, under the same bound.
//
// Spec: RFC 5482.
func setUserTimeout(c *net.TCPConn, timeout time.Duration) error {
	if err := c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true}); err != nil {
		return err
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = raw.Control(func(fd uintptr) {
		serr = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(timeout.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return serr
}
