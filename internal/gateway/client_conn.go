package gateway

import (
	"io"
	"net"
	"sync"
	"time"
)

// A clientConn is a connection with a small send buffer. One goroutine writes at a
// time.
//
// net/http and the gateway set eight read deadlines for each request, most of them for
// bytes that have already arrived. Each takes the runtime's locks and moves a timer, so a
// deadline is only recorded until a Read needs it.
type clientConn struct {
	*net.TCPConn

	// mu guards the fields below. A deadline is set under it, which never blocks.
	mu          sync.Mutex
	deadline    time.Time // the last read deadline that was requested
	readers     int32     // Reads in progress
	unset       bool      // deadline is not set on the connection yet
	hasDeadline bool      // the connection has a deadline
}

// Write implements [net.Conn].
func (c *clientConn) Write(p []byte) (int, error) {
	if len(p) >= largeWrite && c.SetWriteBuffer(largeBuffer) == nil {
		defer func() { _ = c.SetWriteBuffer(sendBuffer) }() // which was its size before
	}
	return c.TCPConn.Write(p)
}

// Read implements [net.Conn].
func (c *clientConn) Read(p []byte) (int, error) {
	if err := c.beginRead(); err != nil {
		return 0, err
	}
	defer c.endRead()
	return c.TCPConn.Read(p)
}

// WriteTo implements [io.WriterTo].
func (c *clientConn) WriteTo(w io.Writer) (int64, error) {
	if err := c.beginRead(); err != nil {
		return 0, err
	}
	defer c.endRead()
	return c.TCPConn.WriteTo(w)
}

// SetReadDeadline implements [net.Conn].
func (c *clientConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline, c.unset = t, c.hasDeadline || !t.IsZero()
	if c.readers == 0 {
		return nil
	}
	return c.applyLocked()
}

// SetDeadline implements [net.Conn].
func (c *clientConn) SetDeadline(t time.Time) error {
	if err := c.SetWriteDeadline(t); err != nil {
		return err
	}
	return c.SetReadDeadline(t)
}

func (c *clientConn) beginRead() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.applyLocked(); err != nil {
		return err
	}
	c.readers++
	return nil
}

func (c *clientConn) endRead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readers--
}

// applyLocked sets the recorded deadline on the connection.
func (c *clientConn) applyLocked() error {
	if !c.unset {
		return nil
	}
	if err := c.TCPConn.SetReadDeadline(c.deadline); err != nil {
		return err
	}
	c.unset, c.hasDeadline = false, !c.deadline.IsZero()
	return nil
}
