package httpserver

import (
	"io"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func option(t *testing.T, c syscall.Conn, level, name int) int {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var v int
	var gerr error
	if err := raw.Control(func(fd uintptr) { v, gerr = unix.GetsockoptInt(int(fd), level, name) }); err != nil {
		t.Fatal(err)
	}
	if gerr != nil {
		t.Fatal(gerr)
	}
	return v
}

// The kernel gives up on a peer that acknowledges nothing after exactly the
// write time-out, and holds 64 KiB for it (which Linux reports doubled).
func TestM2L39SocketOptions(t *testing.T) {
	server, _ := accepted(t, 7*time.Second)
	if got := option(t, server, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); got != 7000 {
		t.Errorf("TCP_USER_TIMEOUT = %d ms, want 7000", got)
	}
	if got := option(t, server, unix.SOL_SOCKET, unix.SO_SNDBUF); got != 2*sendBuffer {
		t.Errorf("SO_SNDBUF = %d, want %d", got, 2*sendBuffer)
	}
	for name, want := range map[int]int{unix.TCP_KEEPIDLE: 15, unix.TCP_KEEPINTVL: 5, unix.TCP_KEEPCNT: 3} {
		if got := option(t, server, unix.IPPROTO_TCP, name); got != want {
			t.Errorf("option %d of keep-alive = %d, want %d", name, got, want)
		}
	}
	if got := option(t, server, unix.SOL_SOCKET, unix.SO_KEEPALIVE); got == 0 {
		t.Error("SO_KEEPALIVE is off: a silent peer that is gone would never be found")
	}
}

// The room for a large result is there for as long as it is written.
func TestM2L39LargeWriteLeavesTheBufferSmall(t *testing.T) {
	server, client := accepted(t, time.Minute)
	during := make(chan int, 1)
	go func() {
		_, _ = io.ReadFull(client, make([]byte, 1<<20))
		during <- option(t, server, unix.SOL_SOCKET, unix.SO_SNDBUF)
		_, _ = io.Copy(io.Discard, client)
		close(during)
	}()
	if _, err := server.Write(make([]byte, 32<<20)); err != nil {
		t.Fatal(err)
	}
	after := option(t, server, unix.SOL_SOCKET, unix.SO_SNDBUF)
	if got := <-during; got <= 2*sendBuffer || after != 2*sendBuffer {
		t.Errorf("SO_SNDBUF = %d while writing and %d after, want more than %d and just that", got, after, 2*sendBuffer)
	}
	_ = server.Close()
	<-during
}
