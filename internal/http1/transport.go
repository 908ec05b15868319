package http1

import (
	"context"
	"errors"
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

// NewTransport returns a Transport that passes the requests which it does not send itself
// to other. Nil means a clone of [http.DefaultTransport]. For its own requests the
// Transport uses other's fields DialContext, Proxy, DisableKeepAlives, IdleConnTimeout,
// MaxIdleConnsPerHost, TLSClientConfig, TLSHandshakeTimeout and MaxResponseHeaderBytes
// (where zero means 256 KiB here).
//
// Other always sends the first request to an https server, since it also offers HTTP/2.
// If the server chooses HTTP/1.1, the Transport sends later requests itself.
//
// Errors of dialling are those of DialContext. An error that wraps [ErrNotSent] means
// that the connection was established, but no byte of the request was sent. After the end
// of the request's context, RoundTrip and the response's body return the context's cause,
// which RoundTrip wraps together with ErrNotSent if no byte was sent, for want of a connection
// as well.
//
// If a reused connection turns out to be closed, the Transport sends the request again on
// a new one, provided that no byte of it was sent, or that its method is safe and no byte
// of a response arrived.
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

// CloseIdleConnections closes the idle connections.
func (t *Transport) CloseIdleConnections() {
	t.pool.closeAll()
	t.other.CloseIdleConnections()
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.RoundTripWith(req, nil)
}

// RoundTripWith is RoundTrip with further fields; see [Merged]. The request's header may be
// shared by requests with other fields.
func (t *Transport) RoundTripWith(req *http.Request, fields []Field) (*http.Response, error) {
	if !t.serves(req) {
		return t.pass(Merged(req, fields))
	}
	ctx := req.Context()
	if ctx.Err() != nil {
		closeBody(req)
		return nil, ended(ctx, ErrNotSent)
	}
	out := outgoing{req: req, text: buffers.Get().(*[]byte)}
	defer out.done()
	if err := out.fill(fields, t.pool.most < 0); err != nil {
		closeBody(req)
		return nil, err
	}
	resp, err := t.send(&out)
	if err != nil && ctx.Err() != nil {
		err = ended(ctx, err)
	}
	return resp, err
}

// ended returns the error of a request whose context has ended: the cause, and that nothing was sent if
// err says so.
func ended(ctx context.Context, err error) error {
	if errors.Is(err, ErrNotSent) {
		return &unsentError{context.Cause(ctx)}
	}
	return context.Cause(ctx)
}

// pass sends a request with the other transport.
func (t *Transport) pass(req *http.Request) (*http.Response, error) {
	resp, err := t.other.RoundTrip(req)
	if err == nil && canPeek && req.URL.Scheme == "https" {
		t.learn(addrOf(req.URL), resp)
	}
	return resp, err
}

// send sends the request, once more if a reused connection fails and mayRepeat allows it.
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
		if ctx.Err() != nil {
			err = ErrNotSent
		}
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

// closeBody closes the request's body, as a RoundTripper must, even on errors.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // the body is not needed any more
	}
}

var _ interface {
	http.RoundTripper
	CloseIdleConnections()
} = (*Transport)(nil)

var _ io.ReadCloser = (*body)(nil)
