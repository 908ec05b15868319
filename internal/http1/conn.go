package http1

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// errNoResponse is wrapped by the error of an exchange if the server closed the
// connection without sending a byte of the response.
var errNoResponse = errors.New("the server closed the connection without a response")

// maxInterim bounds the interim responses (1xx) before a response.
const maxInterim = 16

// A conn is a connection that carries one exchange at a time. Only its owner uses it,
// except that the end of the request's context closes it.
type conn struct {
	t     *Transport
	addr  string
	nc    net.Conn
	tls   *tls.Conn            // nc, if it has TLS
	state *tls.ConnectionState // of tls
	br    *bufio.Reader

	stop func()          // closes nc
	raw  syscall.RawConn // nil: there is no way to ask whether it is still open
	peek func(fd uintptr) bool
	open bool      // result of peek
	idle time.Time // when it became idle
}

func newConn(t *Transport, addr string, nc net.Conn) *conn {
	c := &conn{t: t, addr: addr, nc: nc, br: bufio.NewReader(nc)}
	c.stop = func() { _ = c.nc.Close() } // a concurrent Read or Write returns the error
	socket := nc
	if c.tls, _ = nc.(*tls.Conn); c.tls != nil {
		state := c.tls.ConnectionState()
		socket, c.state = c.tls.NetConn(), &state
	}
	if sc, ok := socket.(syscall.Conn); ok {
		c.raw, _ = sc.SyscallConn() // without it the connection is used once
	}
	c.peek = func(fd uintptr) bool {
		c.open = isOpen(fd)
		return true
	}
	return c
}

func (c *conn) isSecure() bool { return c.tls != nil }

// isOpen reports whether the server has neither closed the idle connection nor sent
// anything on it.
func (c *conn) isOpen() bool {
	c.open = false
	if c.tls != nil && !hasNoInput(c.tls) {
		return false
	}
	return c.raw.Read(c.peek) == nil && c.open
}

// exchange sends out and returns the response. The connection is in use until the body is
// read to its end or closed.
func (c *conn) exchange(out *outgoing) (*http.Response, error) {
	x := &exchange{c: c}
	x.body.x = x
	x.ctx = out.req.Context()
	if x.ctx.Done() != nil {
		x.release = context.AfterFunc(x.ctx, c.stop)
	}
	err := x.write(out)
	if err == nil {
		err = x.read(out.req)
	}
	if err != nil {
		x.end(false)
		return nil, x.failure(err)
	}
	if x.body.left == 0 && x.body.chunks == nil {
		x.end(true)
	}
	return &x.resp, nil
}

// An exchange is a request and its response, until the body is read.
type exchange struct {
	c       *conn
	ctx     context.Context // the request's, which limits the exchange
	release func() bool     // stops waiting for the end of ctx; nil if ctx never ends
	writer  *writer         // of a large request; nil for a small one
	closes  bool            // the connection can't be reused
	body    body
	resp    http.Response
}

// write sends a small request, or begins to send a large one.
func (x *exchange) write(out *outgoing) error {
	if out.rest != nil {
		x.writer = startWriter(x.c.nc, *out.text, out.rest, out.req.ContentLength)
		return nil
	}
	n, err := x.c.nc.Write(*out.text)
	switch {
	case err == nil:
		return nil
	case n == 0:
		return fmt.Errorf("http1: %w: %w", ErrNotSent, err)
	}
	return err
}

// read reads the response up to its body.
func (x *exchange) read(req *http.Request) error {
	h, err := x.readFinal()
	if err != nil {
		return err
	}
	f, err := h.frame()
	if err != nil {
		return err
	}
	x.closes = f.closes || req.Close
	x.resp = http.Response{
		Status: h.status, StatusCode: h.code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: h.minor,
		Header: h.header, Body: &x.body, ContentLength: f.length, Close: x.closes, Request: req, TLS: x.c.state,
	}
	if h.minor == 0 {
		x.resp.Proto = "HTTP/1.0"
	}
	if f.chunked {
		x.resp.TransferEncoding = []string{"chunked"}
	}
	x.body.frame(f)
	return nil
}

// readFinal reads the head of the final response, and skips interim responses.
//
// Spec: RFC 9110, 15.2.
func (x *exchange) readFinal() (head, error) {
	if _, err := x.c.br.Peek(1); err != nil {
		return head{}, x.noResponse(err)
	}
	for range maxInterim {
		h, err := readHead(x.c.br, x.c.t.maxHeader)
		switch {
		case err == io.EOF:
			return h, io.ErrUnexpectedEOF
		case err != nil:
			return h, err
		case h.code == http.StatusSwitchingProtocols:
			return h, malformed("it switches protocols, though the request did not ask for that")
		case h.code >= 200:
			return h, nil
		}
	}
	return head{}, malformed("too many interim responses")
}

// noResponse returns the error for a connection that ended with err before the first byte
// of a response.
func (x *exchange) noResponse(err error) error {
	if err == io.EOF || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("http1: %w: %w", errNoResponse, err)
	}
	return err
}

// failure returns the error of an exchange without a response: the error of sending the
// request, if there is one, or else err.
func (x *exchange) failure(err error) error {
	if x.writer == nil || x.writer.err == nil {
		return err
	}
	if x.writer.sent == 0 {
		return fmt.Errorf("http1: %w: %w", ErrNotSent, x.writer.err)
	}
	return fmt.Errorf("http1: sending the request: %w", x.writer.err)
}

// end returns the connection to the pool, or closes it if it can't be reused. whole says
// whether the response was read completely. When end returns, no goroutine uses the
// connection. It is called once.
func (x *exchange) end(whole bool) {
	keep := whole && !x.closes && x.writer.settled() && x.c.br.Buffered() == 0 && x.c.raw != nil
	if x.release != nil && !x.release() {
		keep = false // ctx has ended and closes the connection
	}
	if keep {
		x.c.t.pool.put(x.c)
		return
	}
	_ = x.c.nc.Close() // it may be closed already
	x.writer.join()
}
