package replicas

import (
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A dialCount counts attempts to connect to a port of this machine, whether anybody listens
// there or not: it sees the packets on the loopback device.
type dialCount struct {
	fd   int
	done chan struct{}

	mu sync.Mutex // guards at
	at []time.Time
}

// countDials counts until the end of the test. It needs the right to read packets, which
// root has; without it, the test goes on and counts nothing, and ok is false.
func countDials(t *testing.T, addr string) (c *dialCount, ok bool) {
	t.Helper()
	network := func(v uint16) uint16 { return v<<8 | v>>8 }                      // x86 and arm64 are little-endian
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0) // nothing comes before it is bound
	if err != nil {
		t.Logf("dials are not counted: reading packets: %v", err)
		return nil, false
	}
	c = &dialCount{fd: fd, done: make(chan struct{})}
	lo, err := net.InterfaceByName("lo")
	if err == nil {
		err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, synTo(uint32(port(addr))))
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: network(unix.ETH_P_IP), Ifindex: lo.Index})
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMP, 1)
	}
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000})
	}
	if err != nil {
		_ = unix.Close(fd)
		t.Fatal(err)
	}
	stop := make(chan struct{})
	go c.read(stop) // ends with stop
	t.Cleanup(func() {
		close(stop)
		<-c.done
		_ = unix.Close(fd)
	})
	return c, true
}

// synTo is a filter for the first packets of connections to a port.
func synTo(port uint32) *unix.SockFprog {
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 9}, // the protocol
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_TCP, Jf: 7},
		{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, K: 0}, // the length of the IP header
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_IND, K: 2},  // the port
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: port, Jf: 4},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_IND, K: 13},    // the flags
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0x12}, // SYN and ACK
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 2, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 64},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
	return &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
}

func (c *dialCount) read(stop chan struct{}) {
	defer close(c.done)
	buf, control := make([]byte, 64), make([]byte, unix.CmsgSpace(16))
	last := make(map[uint64]bool)
	for {
		select {
		case <-stop:
			return
		default:
		}
		n, nc, _, _, err := unix.Recvmsg(c.fd, buf, control, 0)
		if err != nil || n < 28 {
			continue // it waits for 50 ms at most
		}
		head := int(buf[0]&15) * 4
		// Each packet is seen as it leaves and as it comes: the same port and sequence number.
		key := uint64(binary.BigEndian.Uint16(buf[head:]))<<32 | uint64(binary.BigEndian.Uint32(buf[head+4:]))
		if last[key] {
			continue
		}
		last[key] = true
		c.mu.Lock()
		c.at = append(c.at, stamp(control[:nc]))
		c.mu.Unlock()
	}
}

// stamp returns when the kernel has seen a packet: this test may be late to read it.
func stamp(control []byte) time.Time {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) == 0 || len(messages[0].Data) < 16 {
		return time.Now()
	}
	at := messages[0].Data // seconds and microseconds
	return time.Unix(int64(binary.NativeEndian.Uint64(at)), int64(binary.NativeEndian.Uint64(at[8:]))*1000)
}

// since returns how long after a time there were dials.
func (c *dialCount) since(begun time.Time) (after []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range c.at {
		if at.After(begun) {
			after = append(after, at.Sub(begun).Round(time.Millisecond))
		}
	}
	return after
}

// most returns how many dials there were within any second after a time: within 0.9 s, since
// a dial may be late, and the next one in time.
func (c *dialCount) most(begun time.Time) (most int) {
	all := c.since(begun)
	for i, first := range all {
		n := 0
		for _, at := range all[i:] {
			if at-first < 900*time.Millisecond {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
