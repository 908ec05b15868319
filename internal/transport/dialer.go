package transport

import (
	"net"
	"time"
)

// KeepAlive is how TCP notices that the host of a silent peer has vanished: 30 s after it
// was last heard. A call has no end of its own, and many servers say nothing while they
// work; but their hosts answer probes.
var KeepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// vanished is how long sent data may stay unacknowledged, during which there are no probes.
const vanished = 30 * time.Second

// Dialer returns a dialer for HTTP, whose connections fail if the peer's host vanishes. Linux
// ends them also if the peer does not read what is sent for as long. connect bounds the time to
// connect; zero means no limit.
func Dialer(connect time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: connect, KeepAliveConfig: KeepAlive, Control: limitUnacknowledged}
}
