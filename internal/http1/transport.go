package http1

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
)

const (
	defaultMaxIdle   = 2         // as http.Transport's
	defaultMaxHeader = 256 << 10 // bytes
)

// A Transport is an [http.RoundTripper] for HTTP/1.1, with and without TLS. Use
// NewTransport to make one. It is safe for concurrent use.
type Transport struct {
	// Set by NewTransport, read-only after.
	other     *http.Transport
	maxHeader int
	pool      pool

	http1 sync.Map // addresses of https servers that chose HTTP/1.1
}

// NewTransport returns a Transport that leaves to other what it does not do
// itself. Nil means a clone of [http.DefaultTransport]. Of other's fields it goes
// by DialContext, Proxy, DisableKeepAlives, IdleConnTimeout, MaxIdleConnsPerHost,
// TLSClientConfig, TLSHandshakeTimeout and MaxResponseHeaderBytes, which zero sets to
// 256 KiB here; the rest concerns the requests that other sends.
//
// The first request to an https server is always other's, which offers HTTP/2 as well.
// A server that chooses HTTP/1.1 is asked by the Transport itself from then on.
//
// Errors of dialling are DialContext's own; one that wraps [ErrNotSent] says that
// nothing of the request left on a connection that was there. When the request's context ends, the
// error is the cause, from RoundTrip as from the response's body.
//
// A request is sent again, on a new connection, if it met the end of one that had
// been used before: whatever its method if nothing of it had left, else only if
// the method is safe and nothing of a response came.
//
// Spec: RFC 9110, 9.2; RFC 9112, 9.3.1.
func NewTransport(other *http.Transport) *Transport {
	if other == nil {
		other = &http.Transport{Proxy: http.ProxyFromEnvironment}
		if d, ok := http.DefaultTransport.(*http.Transport); ok {
			other = d.Clone()
		}
	}
	t := &Transport{other: other, maxHeader: defaultMaxHeader}
	if n := other.MaxResponseHeaderBytes; n > 0 {
		t.maxHeader = int(n)
	}
	t.pool = pool{most: defaultMaxIdle, timeout: other.IdleConnTimeout}
	if n := other.MaxIdleConnsPerHost; n != 0 {
		t.pool.most = n
	}
	if other.DisableKeepAlives {
		t.pool.most = -1
	}
	return t
}

// CloseIdleConnections closes the connections that nobody uses at the moment.
func (t *Transport) CloseIdleConnections() {
	t.pool.closeAll()
	t.other.CloseIdleConnections()
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.serves(req) {
		return t.pass(req)
	}
	ctx := req.Context()
	if ctx.Err() != nil {
		closeBody(req)
		return nil, context.Cause(ctx)
	}
	out := outgoing{req: req, text: buffers.Get().(*[]byte)}
	defer out.done()
	if err := out.fill(t.pool.most < 0); err != nil {
		closeBody(req)
		return nil, err
	}
	resp, err := t.send(&out)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return resp, err
}

// pass leaves a request to the other transport.
func (t *Transport) pass(req *http.Request) (*http.Response, error) {
	resp, err := t.other.RoundTrip(req)
	if err == nil && canPeek && req.URL.Scheme == "https" {
		t.learn(addrOf(req.URL), resp)
	}
	return resp, err
}

// send sends the request until it has a response, or must not be sent again.
func (t *Transport) send(out *outgoing) (*http.Response, error) {
	ctx, addr := out.req.Context(), out.addr()
	if c := t.pool.get(addr, out.req.URL.Scheme == "https"); c != nil {
		resp, err := c.exchange(out)
		if err == nil || !out.mayRepeat(err) || out.rewind() != nil {
			return resp, err
		}
	}
	c, err := t.dial(ctx, out.req.URL.Scheme, addr)
	if err != nil {
		out.drop()
		return nil, err
	}
	return c.exchange(out)
}

func (t *Transport) dial(ctx context.Context, scheme, addr string) (*conn, error) {
	dial := t.dialTCP
	if scheme == "https" {
		dial = t.dialTLS
	}
	nc, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return newConn(t, addr, nc), nil
}

func (t *Transport) dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	dial := t.other.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return dial(ctx, "tcp", addr)
}

// closeBody does what a RoundTripper owes on failure, too.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // the request's failure is told, or it was read to its end
	}
}

var _ interface {
	http.RoundTripper
	CloseIdleConnections()
} = (*Transport)(nil)

var _ io.ReadCloser = (*body)(nil)
