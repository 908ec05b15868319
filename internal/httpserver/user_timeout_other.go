//go:build !linux

package httpserver

import (
	"net"
	"time"
)

// setUserTimeout makes the kernel send keep-alive probes to a silent peer, and reset the
// connection after about timeout: there is no portable bound on unacknowledged data. The
// write deadline of a stream still detects a peer that does not read.
func setUserTimeout(c *net.TCPConn, timeout time.Duration) error {
	const count = 3
	each := max(timeout/(count+1), time.Second)
	return c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: each, Interval: each, Count: count})
}
