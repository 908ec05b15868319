package http1

import (
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// settleTime is how long to wait for the end of a large request after its response: its
// last write returns at about the same time as the response is read.
const settleTime = 50 * time.Millisecond

// A writer sends a large request while another goroutine waits for the response.
type writer struct {
	done chan struct{} // closed when run has returned
	// Written before done is closed, read-only after.
	sent int64
	err  error
}

// startWriter starts a writer that sends a copy of head and then length bytes of rest,
// and closes rest.
func startWriter(nc net.Conn, head []byte, rest io.ReadCloser, length int64) *writer {
	w := &writer{done: make(chan struct{})}
	// It ends with the body, or when nc is closed; exchange.end waits for it.
	go w.run(nc, slices.Clone(head), rest, length)
	return w
}

func (w *writer) run(nc net.Conn, head []byte, rest io.ReadCloser, length int64) {
	defer close(w.done)
	defer rest.Close() // it is not needed any more
	n, err := nc.Write(head)
	w.sent = int64(n)
	if err != nil {
		w.err = err
		return // the server has closed the connection: the reader returns the error
	}
	source := &source{r: io.LimitReader(rest, length)}
	m, err := io.Copy(nc, source)
	w.sent += m
	if err == nil && m < length {
		source.err = fmt.Errorf("the body ended after %d bytes of %d", m, length)
	}
	if w.err = err; source.err != nil {
		w.err = source.err
		_ = nc.Close() // the request is incomplete; the reader returns the error
	}
}

// settled reports whether the whole request was sent.
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

// join waits for the end of run. The connection must be closed.
func (w *writer) join() {
	if w != nil {
		<-w.done
	}
}

// A source records errors of reading, so that they can be told from errors of writing.
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
