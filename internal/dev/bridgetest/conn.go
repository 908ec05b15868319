package bridgetest

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// A memoryConn is one end of a connection in memory.
type memoryConn struct {
	in, out       *stream
	local, remote net.Addr
}

func newConnPair(client, server net.Addr) (net.Conn, net.Conn) {
	up, down := newStream(), newStream()
	return &memoryConn{in: down, out: up, local: client, remote: server},
		&memoryConn{in: up, out: down, local: server, remote: client}
}

func (c *memoryConn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *memoryConn) Write(p []byte) (int, error) { return c.out.write(p) }
func (c *memoryConn) LocalAddr() net.Addr         { return c.local }
func (c *memoryConn) RemoteAddr() net.Addr        { return c.remote }

// Close ends both directions. The peer still reads what was written before. Nothing can be
// written once a Read has failed for it.
func (c *memoryConn) Close() error {
	c.out.closeWriter()
	c.in.closeReader()
	return nil
}

func (c *memoryConn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.reading, t)
	return nil
}

func (c *memoryConn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writing, t)
	return nil
}

func (c *memoryConn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// stream is one direction of a connection.
type stream struct {
	mu               sync.Mutex // guards the fields below
	changed          *sync.Cond // signalled on every change of them
	data             []byte     // written and not read; at most bufferSize
	ended            bool       // the writer closed
	gone             bool       // the reader closed
	reading, writing deadline
}

// deadline is one side's. It is guarded by the stream's lock.
type deadline struct {
	timer  *time.Timer
	passed bool
}

func newStream() *stream {
	s := &stream{}
	s.changed = sync.NewCond(&s.mu)
	return s
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.gone:
			return 0, net.ErrClosed
		case s.reading.passed:
			return 0, os.ErrDeadlineExceeded
		case len(s.data) > 0 || len(p) == 0:
			n := copy(p, s.data)
			s.data = append(s.data[:0], s.data[n:]...)
			s.changed.Broadcast()
			return n, nil
		case s.ended:
			return 0, io.EOF
		}
		s.changed.Wait()
	}
}

// write blocks while the buffer is full.
func (s *stream) write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.ended:
			return n, net.ErrClosed
		case s.gone:
			return n, syscall.EPIPE
		case s.writing.passed:
			return n, os.ErrDeadlineExceeded
		}
		if room := min(bufferSize-len(s.data), len(p)-n); room > 0 {
			s.data = append(s.data, p[n:n+room]...)
			n += room
			s.changed.Broadcast()
		}
		if n == len(p) {
			return n, nil
		}
		s.changed.Wait()
	}
}

func (s *stream) closeReader() {
	s.setDeadline(&s.reading, time.Time{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone, s.data = true, nil
	s.changed.Broadcast()
}

func (s *stream) closeWriter() {
	s.setDeadline(&s.writing, time.Time{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.changed.Broadcast()
}

// setDeadline replaces d; the zero time takes it away.
func (s *stream) setDeadline(d *deadline, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	d.timer, d.passed = nil, false
	switch wait := time.Until(t); {
	case t.IsZero():
	case wait <= 0:
		d.passed = true
	default:
		var timer *time.Timer
		timer = time.AfterFunc(wait, func() { s.expire(d, &timer) })
		d.timer = timer
	}
	s.changed.Broadcast()
}

// expire marks d as passed, unless it was replaced since *timer was set.
func (s *stream) expire(d *deadline, timer **time.Timer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.timer == *timer {
		d.passed = true
		s.changed.Broadcast()
	}
}
