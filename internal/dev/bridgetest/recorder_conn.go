package bridgetest

import (
	"errors"
	"io"
)

// A Conn carries whole messages, as that of the transport package does, whose tests import
// this one.
type Conn interface {
	Read() ([]byte, error)
	Write(msg []byte) error
	Close() error
}

// Conn returns a connection that records the messages of conn, all in one channel, whose
// title is given. conn is the client's end of the wire, or else the server's.
func (r *Recorder) Conn(wire, title string, conn Conn, client bool) Conn {
	c := &recordedConn{Conn: conn, ch: r.open(wire, title), sent: ">", read: "<"}
	if !client {
		c.sent, c.read = c.read, c.sent
	}
	return c
}

type recordedConn struct {
	Conn
	ch         *channel
	sent, read string // the marks
}

// Write implements [Conn].
func (c *recordedConn) Write(msg []byte) error {
	c.ch.add(c.sent, string(msg))
	return c.Conn.Write(msg)
}

// Read implements [Conn].
func (c *recordedConn) Read() ([]byte, error) {
	msg, err := c.Conn.Read()
	switch {
	case err == nil:
		c.ch.add(c.read, string(msg))
	case errors.Is(err, io.EOF):
		c.ch.add("=", "the other side closed "+c.read)
	}
	return msg, err
}
