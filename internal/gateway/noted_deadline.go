package gateway

import (
	"net"
	"sync"
	"time"
)

// A notedDeadline is the deadline of one direction of a connection, which gets it when a
// call begins that has to keep it.
type notedDeadline struct {
	conn   *net.TCPConn
	writes bool // it is that of writes

	// mu guards the fields below. The connection's own deadline is set under it, which
	// never blocks.
	mu      sync.Mutex
	noted   time.Time // the deadline that was asked for
	calls   int32     // under way
	due     bool      // the connection has another deadline than the one noted
	bounded bool      // it has one
}

// set notes a deadline, and has the calls under way keep it.
func (d *notedDeadline) set(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noted, d.due = t, d.bounded || !t.IsZero()
	if d.calls == 0 {
		return nil
	}
	return d.keepLocked()
}

// isOver reports whether the deadline has passed.
func (d *notedDeadline) isOver() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.noted.IsZero() && time.Until(d.noted) <= 0
}

// begin begins a call that keeps the deadline, until end.
func (d *notedDeadline) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.keepLocked(); err != nil {
		return err
	}
	d.calls++
	return nil
}

func (d *notedDeadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls--
}

// keepLocked gives the connection the deadline that was noted.
func (d *notedDeadline) keepLocked() error {
	if !d.due {
		return nil
	}
	set := d.conn.SetReadDeadline
	if d.writes {
		set = d.conn.SetWriteDeadline
	}
	if err := set(d.noted); err != nil {
		return err
	}
	d.due, d.bounded = false, !d.noted.IsZero()
	return nil
}
