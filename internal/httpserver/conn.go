package httpserver

import (
	"io"
	"net"
	"syscall"
	"time"
)

// A conn is a client's connection with a small send buffer. One goroutine writes at a
// time.
//
// net/http and we set eight read deadlines and two write deadlines for each request, most
// of them for bytes that are there already, or for which the kernel has room. Each takes
// the runtime's locks and moves a timer, so that one is only noted until a call has to
// wait.
type conn struct {
	*net.TCPConn
	reads, writes notedDeadline

	raw     syscall.RawConn       // nil: there is no way to write without waiting
	attempt func(fd uintptr) bool // writePart
	part    []byte                // what is left to write; owned by the writer
}

func newConn(tcp *net.TCPConn) *conn {
	c := &conn{TCPConn: tcp, reads: notedDeadline{conn: tcp}, writes: notedDeadline{conn: tcp, writes: true}}
	if raw, err := tcp.SyscallConn(); canAttempt && err == nil {
		c.raw, c.attempt = raw, c.writePart
	}
	return c
}

func (c *conn) writePart(fd uintptr) bool {
	c.part = c.part[writeSome(fd, c.part):]
	return true
}

// Write implements [net.Conn].
func (c *conn) Write(p []byte) (int, error) {
	if len(p) >= largeWrite && c.SetWriteBuffer(largeBuffer) == nil {
		defer func() { _ = c.SetWriteBuffer(sendBuffer) }() // it was, just before
	}
	n := c.writeNow(p)
	if n == len(p) {
		return n, nil
	}
	if err := c.writes.begin(); err != nil {
		return n, err
	}
	defer c.writes.end()
	more, err := c.TCPConn.Write(p[n:])
	return n + more, err
}

// writeNow writes what the kernel has room for, and returns how much that was. Of an
// error a Write tells, or none is left.
func (c *conn) writeNow(p []byte) int {
	if c.raw == nil || len(p) == 0 || c.writes.isOver() {
		return 0
	}
	c.part = p
	_ = c.raw.Write(c.attempt)
	n := len(p) - len(c.part)
	c.part = nil
	return n
}

// ReadFrom implements [io.ReaderFrom].
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if err := c.writes.begin(); err != nil {
		return 0, err
	}
	defer c.writes.end()
	return c.TCPConn.ReadFrom(r)
}

// Read implements [net.Conn].
func (c *conn) Read(p []byte) (int, error) {
	if err := c.reads.begin(); err != nil {
		return 0, err
	}
	defer c.reads.end()
	return c.TCPConn.Read(p)
}

// WriteTo implements [io.WriterTo].
func (c *conn) WriteTo(w io.Writer) (int64, error) {
	if err := c.reads.begin(); err != nil {
		return 0, err
	}
	defer c.reads.end()
	return c.TCPConn.WriteTo(w)
}

// SetReadDeadline implements [net.Conn].
func (c *conn) SetReadDeadline(t time.Time) error { return c.reads.set(t) }

// SetWriteDeadline implements [net.Conn].
func (c *conn) SetWriteDeadline(t time.Time) error { return c.writes.set(t) }

// SetDeadline implements [net.Conn].
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetWriteDeadline(t); err != nil {
		return err
	}
	return c.SetReadDeadline(t)
}
