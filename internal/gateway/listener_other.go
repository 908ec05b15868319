//go:build !linux

package gateway

import (
	"net"
	"time"
)

// setUserTimeout makes the kernel ask a silent peer whether it is there, and
// give up after about timeout: there is no portable bound on unacknowledged
// data. The write deadline of a stream still finds a peer that does not read.
func setUserTimeout(c *net.TCPConn, timeout time.Duration) error {
	const count = 3
	each := max(timeout/(count+1), time.Second)
	return c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: each, Interval: each, Count: count})
}
