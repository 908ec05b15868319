package replicas

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A fault is what is wrong with one direction between two parties.
type fault int

const (
	flows  fault = iota
	slow         // what is sent comes later, by slowness
	stalls       // what is sent lies there, and goes on when the fault is over
	cut          // connections break, and new ones are refused
)

// slowness is by how much a slow link delays each way.
const slowness = 200 * time.Millisecond

// A link is a TCP proxy before one address. Whoever connects is known by the process that
// has the other end, so that a fault is between two parties.
type link struct {
	t        testing.TB
	addr, to string
	parties  func() map[int]string // by their process

	// mu guards the fields below.
	mu     sync.Mutex
	cond   *sync.Cond // of mu: a fault has changed, or a connection is over
	l      net.Listener
	faults map[string][2]fault // by party: to the address, and back. "" is for all
	conns  map[*crossing]bool
	tap    *bytes.Buffer // nil, or what was sent to the address, whether it stalls or not
	closed bool

	running sync.WaitGroup
}

// A crossing is one connection, and the proxy's own to the address.
type crossing struct {
	from    string
	in, out net.Conn
	over    bool // guarded by link.mu
}

// newLink returns a link to an address.
func newLink(t testing.TB, to string, w *world) *link {
	t.Helper()
	k := &link{t: t, to: to, parties: w.running, faults: make(map[string][2]fault), conns: make(map[*crossing]bool)}
	k.cond = sync.NewCond(&k.mu)
	var err error
	for range 10 { // a program that is no test may take the port first
		k.addr = rig.FreeAddr(t)
		if err = k.tryOpen(); err == nil {
			t.Cleanup(k.close)
			return k
		}
	}
	t.Fatal(err)
	return nil
}

// open accepts connections. Before, they are refused.
func (k *link) open() {
	k.t.Helper()
	if err := k.tryOpen(); err != nil {
		k.t.Fatal(err)
	}
}

func (k *link) tryOpen() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.l != nil {
		return nil
	}
	l, err := net.Listen("tcp", k.addr)
	if err != nil {
		return err
	}
	k.l = l
	k.running.Go(func() { k.accept(l) }) // ends with the listener
	return nil
}

// shut breaks all connections and refuses new ones, as a machine does whose program has
// ended.
func (k *link) shut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.l != nil {
		_ = k.l.Close() // it listens no more, whatever it says
		k.l = nil
	}
	for c := range k.conns {
		c.breakLocked()
	}
	k.cond.Broadcast()
}

func (k *link) close() {
	k.shut()
	k.mu.Lock()
	k.closed = true
	k.cond.Broadcast()
	k.mu.Unlock()
	k.running.Wait()
}

// set makes a fault between a party, "" for all, and the address, for either direction.
func (k *link) set(party string, to, back fault) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.faults[party] = [2]fault{to, back}
	if to == cut || back == cut {
		for c := range k.conns {
			if party == "" || c.from == party {
				c.breakLocked()
			}
		}
	}
	k.cond.Broadcast()
}

// heal ends all faults.
func (k *link) heal() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.faults)
	k.cond.Broadcast()
}

// listen keeps what is sent to the address from here on.
func (k *link) listen() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tap = new(bytes.Buffer)
}

// heard returns what was kept.
func (k *link) heard() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tap.String()
}

// breakLocked has both ends see a reset.
func (c *crossing) breakLocked() {
	c.over = true
	for _, conn := range []net.Conn{c.in, c.out} {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // it is closed next
			_ = tcp.Close()
		}
	}
}

func (k *link) faultLocked(party string, back int) fault {
	return max(k.faults[""][back], k.faults[party][back])
}

func (k *link) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		k.running.Go(func() { k.cross(conn) }) // ends with either end, or shut
	}
}

// cross connects one connection with the address, and copies until either end is closed.
func (k *link) cross(conn net.Conn) {
	c := &crossing{in: conn, from: k.whose(conn)}
	k.mu.Lock()
	k.conns[c] = true
	if k.l == nil || k.faultLocked(c.from, 0) == cut || k.faultLocked(c.from, 1) == cut {
		c.breakLocked()
	}
	for !c.over && k.tap == nil && k.faultLocked(c.from, 0) == stalls { // what is kept has to be read
		k.cond.Wait()
	}
	refused := c.over
	k.mu.Unlock()
	if !refused {
		k.carry(c)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	c.breakLocked()
	delete(k.conns, c)
}

func (k *link) carry(c *crossing) {
	out, err := net.DialTimeout("tcp", k.to, 5*time.Second)
	if err != nil {
		return
	}
	k.mu.Lock()
	c.out = out
	if c.over {
		c.breakLocked()
	}
	k.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { k.copy(c, c.out, c.in, 0) }) // ends with in, or shut
	k.copy(c, c.in, c.out, 1)
	both.Wait()
}

// A parcel is what was read at once, and how reading has ended.
type parcel struct {
	due  time.Time
	data []byte
	err  error
}

// copy carries bytes one way, or holds them while that way stalls.
func (k *link) copy(c *crossing, to, from net.Conn, way int) {
	parcels := make(chan parcel, 64)
	var delivering sync.WaitGroup
	delivering.Go(func() { // ends with parcels
		for p := range parcels {
			k.deliver(c, to, from, way, p)
		}
	})
	for {
		buf := make([]byte, 32<<10)
		n, err := from.Read(buf)
		p := parcel{time.Now(), buf[:n], err}
		k.mu.Lock()
		if k.tap != nil && way == 0 {
			k.tap.Write(buf[:n])
		}
		if k.faultLocked(c.from, way) == slow {
			p.due = p.due.Add(slowness)
		}
		k.mu.Unlock()
		if parcels <- p; err != nil {
			break
		}
	}
	close(parcels)
	delivering.Wait()
}

// deliver writes a parcel as soon as its way lets it.
func (k *link) deliver(c *crossing, to, from net.Conn, way int, p parcel) {
	time.Sleep(time.Until(p.due))
	k.mu.Lock()
	for !c.over && !k.closed && k.faultLocked(c.from, way) == stalls {
		k.cond.Wait()
	}
	k.mu.Unlock()
	if len(p.data) > 0 {
		if _, err := to.Write(p.data); err != nil {
			_ = from.Close() // the other way ends, too
			return
		}
	}
	switch p.err {
	case nil:
	case io.EOF:
		_ = to.(*net.TCPConn).CloseWrite() // the other end may be gone
	default:
		_ = to.Close() // the other way ends, too
	}
}

// whose returns the party that has the other end of a connection.
func (k *link) whose(conn net.Conn) (party string) {
	peer, self := conn.RemoteAddr().(*net.TCPAddr).Port, conn.LocalAddr().(*net.TCPAddr).Port
	for pid, name := range k.parties() {
		_ = connections(pid, func(local, other int) { // a process that is gone has none
			if local == peer && other == self {
				party = name
			}
		})
	}
	return party
}
