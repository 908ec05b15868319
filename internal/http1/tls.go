package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"time"
)

// protocol is the only protocol offered by ALPN. The Transport dials only servers that
// have chosen it before.
//
// Spec: RFC 7301, 6.
const protocol = "http/1.1"

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// learn records which protocol an https server chose for a request of net/http's
// transport, which also offers HTTP/2. Requests to servers that choose HTTP/2 stay with
// that transport.
func (t *Transport) learn(addr string, resp *http.Response) {
	if resp.TLS == nil || t.other.DialTLSContext != nil {
		return
	}
	if chosen := resp.TLS.NegotiatedProtocol; resp.ProtoMajor == 1 && (chosen == "" || chosen == protocol) {
		t.http1.Store(addr, true)
	} else {
		t.http1.Delete(addr)
	}
}

// speaksHTTP1 reports whether the https server of an address chose HTTP/1.1.
func (t *Transport) speaksHTTP1(addr string) bool {
	_, ok := t.http1.Load(addr)
	return ok
}

// dialTLS opens a connection to an https server with the settings of the other transport.
func (t *Transport) dialTLS(ctx context.Context, addr string) (net.Conn, error) {
	nc, err := t.dialTCP(ctx, addr)
	if err != nil {
		return nil, err
	}
	if d := t.other.TLSHandshakeTimeout; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	tc := tls.Client(nc, t.tlsConfig(addr))
	if err := tc.HandshakeContext(ctx); err != nil {
		_ = nc.Close() // the caller gets the error of the handshake
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: nc.RemoteAddr(), Err: err}
	}
	return tc, nil
}

func (t *Transport) tlsConfig(addr string) *tls.Config {
	conf := &tls.Config{}
	if t.other.TLSClientConfig != nil {
		conf = t.other.TLSClientConfig.Clone()
	}
	if conf.ServerName == "" {
		conf.ServerName, _, _ = net.SplitHostPort(addr) // it has a port
	}
	conf.NextProtos = []string{protocol}
	return conf
}

// hasNoInput reports whether tc has no unread data that has already been read from the
// socket, such as the server's close_notify alert.
func hasNoInput(tc *tls.Conn) bool {
	var b [1]byte
	if tc.SetReadDeadline(longAgo) != nil {
		return false
	}
	n, err := tc.Read(b[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && tc.SetReadDeadline(time.Time{}) == nil
}
