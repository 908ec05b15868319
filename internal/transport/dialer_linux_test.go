package transport

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A server whose host has vanished is found within 30 s, whether something was sent or not.
func TestM2L14VanishedHost(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := NewHTTP(time.Minute, nil).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	checkOptions(t, c, []socketOption{
		{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15},
		{"TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 5},
		{"TCP_KEEPCNT", unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3},
		{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 30_000},
	})
}

// A server at a WebSocket may be busy and read nothing of a long message for any time. With
// TCP_USER_TIMEOUT, Linux ends a connection whose peer has no room for so long, though the peer
// acknowledges every probe of that. Pings find a host that has vanished.
func TestM2L14BusyWebSocketHasNoUserTimeout(t *testing.T) {
	dialed, _ := sockets(t, WebSocketOptions{})
	checkOptions(t, dialed.ws.NetConn(), []socketOption{
		{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15},
		{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 0},
	})
}

type socketOption struct {
	what              string
	level, name, want int
}

func checkOptions(t *testing.T, c net.Conn, want []socketOption) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range want {
		var got int
		if cerr := raw.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), o.level, o.name) }); cerr != nil || err != nil || got != o.want {
			t.Errorf("%s = %d, want %d (%v, %v)", o.what, got, o.want, cerr, err)
		}
	}
}
