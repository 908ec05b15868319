package bridgetest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// FreeAddr returns an address of loopback that nobody listens on, for a program that a test has listen
// there later. Its port is below those that systems give to clients by themselves, and no test of any
// process is given it again before this one has ended: the UDP port of the same number is kept as a sign.
func FreeAddr(t testing.TB) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprint("127.0.0.1:", 10_000+rand.N(10_000))
		sign, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			_ = sign.Close()
			continue
		}
		_ = l.Close()
		t.Cleanup(func() { _ = sign.Close() })
		return addr
	}
	t.Fatal("no port is free")
	return ""
}
