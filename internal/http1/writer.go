package http1

import (
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// settleTime is how long the end of a request may take to be noticed that was
// answered: its last write returns at about the time the response is read.
const settleTime = 50 * time.Millisecond

// A writer sends a large request while the response is awaited.
type writer struct {
	done chan struct{} // closed when run has returned
	// Written before done is closed, read-only after.
	sent int64
	err  error
}

// startWriter copies head, and owns rest, which has so many bytes.
func startWriter(nc net.Conn, head []byte, rest io.ReadCloser, length int64) *writer {
	w := &writer{done: make(chan struct{})}
	// It ends with the body, or when nc is closed; exchange.end waits for it.
	go w.run(nc, slices.Clone(head), rest, length)
	return w
}

func (w *writer) run(nc net.Conn, head []byte, rest io.ReadCloser, length int64) {
	defer close(w.done)
	defer rest.Close() // it was read, or is not wanted
	n, err := nc.Write(head)
	w.sent = int64(n)
	if err != nil {
		w.err = err
		return // the server has closed the connection: reading tells
	}
	source := &source{r: io.LimitReader(rest, length)}
	m, err := io.Copy(nc, source)
	w.sent += m
	if err == nil && m < length {
		source.err = fmt.Errorf("the body ended after %d bytes of %d", m, length)
	}
	if w.err = err; source.err != nil {
		w.err = source.err
		_ = nc.Close() // half a request is none; whoever reads tells
	}
}

// settled reports whether the whole request has left.
func (w *writer) settled() bool {
	if w == nil {
		return true
	}
	t := time.NewTimer(settleTime)
	defer t.Stop()
	select {
	case <-w.done:
		return w.err == nil
	case <-t.C:
		return false
	}
}

// join waits for the end of run, whose connection is closed.
func (w *writer) join() {
	if w != nil {
		<-w.done
	}
}

// A source remembers that reading failed, not writing.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}
