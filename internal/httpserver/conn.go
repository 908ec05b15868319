package httpserver

import (
	"io"
	"net"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/http1"
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
	some          *http1.SomeWriter
}

func newConn(tcp *net.TCPConn) *conn {
	return &conn{tcp, notedDeadline{conn: tcp}, notedDeadline{conn: tcp, writes: true}, http1.NewSomeWriter(tcp)}
}

// Write implements [net.Conn].
func (c *conn) Write(p []byte) (int, error) {
	if len(p) >= largeWrite && c.SetWriteBuffer(largeBuffer) == nil {
		defer func() { _ = c.SetWriteBuffer(sendBuffer) }() // it was, just before
	}
	n := 0
	if !c.writes.isOver() {
		n = c.some.Write(p)
	}
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
