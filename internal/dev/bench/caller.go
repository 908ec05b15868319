//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// A target is where calls go, over connections that stay open.
type target struct {
	child   *child // whose CPU is asked for
	request []byte
	want    int // the answer has at least so many bytes
	conns   []*clientConn
}

type clientConn struct {
	net.Conn
	r       *bufio.Reader
	request []byte // its own; nil for the target's
}

// newTarget connects to addr and checks one answer in full, which is that of a call.
func newTarget(c *child, addr string, request []byte, want, conns int) (*target, error) {
	return newTargetOf(c, addr, request, `"result":{"content":[{"type":"text"`, want, conns)
}

// newTargetOf is newTarget for answers that have a text.
func newTargetOf(c *child, addr string, request []byte, has string, want, conns int) (*target, error) {
	t := &target{child: c, request: request, want: want}
	for range conns {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return nil, err
		}
		t.conns = append(t.conns, &clientConn{Conn: conn, r: bufio.NewReaderSize(conn, 64<<10)})
	}
	var text bytes.Buffer
	if err := t.conns[0].call(t, &text); err != nil {
		return nil, err
	}
	if !bytes.Contains(text.Bytes(), []byte(has)) {
		return nil, fmt.Errorf("%s answered %.500s", c.name, text.String())
	}
	return t, nil
}

func (t *target) close() {
	for _, c := range t.conns {
		_ = c.Close()
	}
}

// call makes one call and copies its answer to w.
func (c *clientConn) call(t *target, w io.Writer) error {
	if _, err := c.Write(c.requestOf(t)); err != nil {
		return err
	}
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return err
	}
	n, err := io.Copy(w, res.Body)
	if err != nil || res.StatusCode != http.StatusOK || n < int64(t.want) {
		return fmt.Errorf("%s answered %s, %d bytes, %v; want 200 and %d bytes", t.child.name, res.Status, n, err, t.want)
	}
	return nil
}

func (c *clientConn) requestOf(t *target) []byte {
	if c.request != nil {
		return c.request
	}
	return t.request
}

// run makes n calls, spread over the connections.
func (t *target) run(n int) error {
	errs := make([]error, len(t.conns))
	var wg sync.WaitGroup
	for i, c := range t.conns {
		wg.Go(func() {
			for j := i; j < n && errs[i] == nil; j += len(t.conns) {
				errs[i] = c.call(t, io.Discard)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// cpuPerCall returns nanoseconds of CPU in the target's process.
func (t *target) cpuPerCall(n int) (float64, error) {
	total, err := t.child.cpu(func() error { return t.run(n) })
	return total / float64(n), err
}

// timed makes one call and returns how long it took.
func (t *target) timed() (time.Duration, error) {
	start := time.Now()
	err := t.conns[0].call(t, io.Discard)
	return time.Since(start), err
}
