//go:build linux

package chart

import (
	"context"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// A network is a switch in a namespace of its own, which the test is at, too. Addresses and
// ports there are nobody else's.
type network struct {
	hub   int // the namespace
	ports int
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a network of its own needs root")
	}
	n := &network{hub: newNamespace(t)}
	ip(t, n.hub, "link add br0 type bridge", "addr add 10.77.0.1/24 dev br0", "link set br0 up")
	return n
}

// newNamespace returns a namespace of the network, until the end of the test.
func newNamespace(t *testing.T) int {
	t.Helper()
	made, failed := -1, error(nil)
	inThread(func() {
		if failed = unix.Unshare(unix.CLONE_NEWNET); failed == nil {
			made, failed = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
	})
	must(t, failed)
	t.Cleanup(func() { _ = unix.Close(made) })
	ip(t, made, "link set lo up")
	return made
}

// inThread calls f in a thread that ends then, whatever f has made of it.
func inThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}

// within calls f in a namespace.
func within(namespace int, f func() error) (err error) {
	inThread(func() {
		if err = unix.Setns(namespace, unix.CLONE_NEWNET); err == nil {
			err = f()
		}
	})
	return err
}

func ip(t *testing.T, namespace int, commands ...string) {
	t.Helper()
	for _, c := range commands {
		must(t, within(namespace, func() error {
			out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput()
			if err != nil {
				t.Errorf("ip %s: %s", c, out)
			}
			return err
		}))
	}
}

// join returns a namespace that has an address of the network.
func (n *network) join(t *testing.T, addr string) int {
	t.Helper()
	made := newNamespace(t)
	n.ports++
	port := "p" + strconv.Itoa(n.ports)
	at := "/proc/" + strconv.Itoa(os.Getpid()) + "/fd/" + strconv.Itoa(made)
	ip(t, n.hub, "link add "+port+" type veth peer name eth0 netns "+at, "link set "+port+" master br0 up")
	ip(t, made, "addr add "+addr+"/24 dev eth0", "link set eth0 up")
	return made
}

// dial connects from the switch.
func (n *network) dial(ctx context.Context, _, addr string) (conn net.Conn, err error) {
	err = within(n.hub, func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", addr)
		return err
	})
	return conn, err
}

// resolve answers questions for A records at an address in a namespace, as Docker's DNS
// does, with the same addresses for every name.
func resolve(t *testing.T, namespace int, addr string, answers ...string) {
	t.Helper()
	var conn net.PacketConn
	must(t, within(namespace, func() (err error) {
		conn, err = net.ListenPacket("udp", addr)
		return err
	}))
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	go func() {
		defer close(done)
		question := make([]byte, 8192)
		for {
			n, from, err := conn.ReadFrom(question)
			if err != nil {
				return
			}
			if answer := answered(question[:n], answers); answer != nil {
				_, _ = conn.WriteTo(answer, from) // errors: it asks again
			}
		}
	}()
}

// answered returns the answer to a question, nil if it can't be read.
func answered(question []byte, addrs []string) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
		return nil
	}
	m.Response, m.Additionals = true, nil
	for _, addr := range addrs {
		if m.Questions[0].Type == dnsmessage.TypeA {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: 5},
				Body:   &dnsmessage.AResource{A: [4]byte(net.ParseIP(addr).To4())},
			})
		}
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}
