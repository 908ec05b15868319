package httpserver

import (
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// setUserTimeout bounds how long sent data may stay unacknowledged before the connection is
// reset, also if the peer's window is zero. Keep-alive probes on an idle connection have the
// same bound.
//
// Spec: RFC 5482.
func setUserTimeout(c *net.TCPConn, timeout time.Duration) error {
	if err := c.SetKeepAliveConfig(transport.KeepAlive); err != nil {
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
