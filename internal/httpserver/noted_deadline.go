package httpserver

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A notedDeadline is the deadline of one direction of a connection, which gets it when a
// call begins that has to keep it. Safe for concurrent use.
type notedDeadline struct {
	conn   *net.TCPConn
	writes bool // it is that of writes

	noted atomic.Int64 // see sinceEpoch
	kept  atomic.Int64 // the connection's own
	calls atomic.Int32 // under way: they began before they looked at noted

	mu sync.Mutex // held to set the connection's own, which never blocks
}

// epoch is when deadlines are counted from.
var epoch = time.Now()

// sinceEpoch returns a deadline as nanoseconds, zero for none.
func sinceEpoch(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return int64(t.Sub(epoch)) | 1 // never zero
}

// set notes a deadline, and has the calls under way keep it.
func (d *notedDeadline) set(t time.Time) error {
	d.noted.Store(sinceEpoch(t))
	if d.calls.Load() == 0 {
		return nil
	}
	return d.keep()
}

// isOver reports whether the deadline has passed.
func (d *notedDeadline) isOver() bool {
	at := d.noted.Load()
	return at != 0 && int64(time.Since(epoch)) >= at
}

// begin begins a call that keeps the deadline, until end.
func (d *notedDeadline) begin() error {
	d.calls.Add(1)
	err := d.keep()
	if err != nil {
		d.end()
	}
	return err
}

func (d *notedDeadline) end() { d.calls.Add(-1) }

// keep gives the connection the deadline that was noted.
func (d *notedDeadline) keep() error {
	if d.noted.Load() == d.kept.Load() {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for { // another may be noted meanwhile
		at := d.noted.Load()
		if at == d.kept.Load() {
			return nil
		}
		if err := d.give(at); err != nil {
			return err
		}
		d.kept.Store(at)
	}
}

func (d *notedDeadline) give(at int64) error {
	var t time.Time
	if at != 0 {
		t = epoch.Add(time.Duration(at))
	}
	if d.writes {
		return d.conn.SetWriteDeadline(t)
	}
	return d.conn.SetReadDeadline(t)
}
