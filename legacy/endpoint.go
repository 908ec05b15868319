package legacy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// An endpoint is a server's URL and the way there, shared by all sessions.
type endpoint struct {
	rt      http.RoundTripper
	url     *url.URL
	headers http.Header     // the config's
	own     *http.Transport // rt, if the Back made it itself

	size atomic.Int64 // of the last answer: what the next is expected to take
}

// newEndpoint trusts that o was checked.
func newEndpoint(o *Options) *endpoint {
	u, err := url.Parse(o.URL)
	if err != nil || o.URL == "" {
		return nil
	}
	e := &endpoint{rt: o.RoundTripper, url: u, headers: o.Headers}
	if e.rt == nil {
		e.own = ownTransport()
		e.rt = e.own
	}
	return e
}

// ownTransport is net/http's transport for one origin with many requests at a
// time. Bodies pass as they are: unpacking them costs more than loopback and
// data centres save.
func ownTransport() *http.Transport {
	t := &http.Transport{}
	if d, ok := http.DefaultTransport.(*http.Transport); ok {
		t = d.Clone()
	}
	t.DisableCompression = true
	t.MaxIdleConns = 0
	t.MaxIdleConnsPerHost = 256
	return t
}

// header returns what goes with every request of one kind: the config's headers,
// and over them what the protocol defines. Nothing of the client's.
//
// Spec: 2025-11-25, basic/transports, Sending Messages to the Server.
func (e *endpoint) header(accept string, session string, revision spec.Revision) http.Header {
	h := e.headers.Clone()
	if h == nil {
		h = make(http.Header, 4)
	}
	for _, name := range []string{spec.HeaderMethod, spec.HeaderName, spec.HeaderLastEventID, spec.HeaderSession, spec.HeaderProtocolVersion, "Host", "Content-Length"} {
		h.Del(name)
	}
	h.Set("Accept", accept)
	h.Set("Content-Type", "application/json")
	if revision != "" {
		h.Set(spec.HeaderProtocolVersion, string(revision))
	}
	if session != "" {
		h.Set(spec.HeaderSession, session)
	}
	return h
}

// post sends frame. sent tells, on failure, whether any of it can have reached
// the server. h is shared: RoundTrippers don't change it.
func (e *endpoint) post(ctx context.Context, h http.Header, frame []byte) (resp *http.Response, sent bool, err error) {
	body := &frameBody{touched: new(atomic.Bool), frame: frame}
	req := (&http.Request{
		Method:        http.MethodPost,
		URL:           e.url,
		Host:          e.url.Host,
		Header:        h,
		Body:          body,
		GetBody:       body.again,
		ContentLength: int64(len(frame)),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
	}).WithContext(ctx)
	resp, err = e.rt.RoundTrip(req)
	return resp, body.touched.Load(), err
}

// bare sends a request without a body.
func (e *endpoint) bare(ctx context.Context, method string, h http.Header) (*http.Response, error) {
	return e.rt.RoundTrip((&http.Request{
		Method:     method,
		URL:        e.url,
		Host:       e.url.Host,
		Header:     h,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
	}).WithContext(ctx))
}

// close lets go of idle connections.
func (e *endpoint) close() {
	if e.own != nil {
		e.own.CloseIdleConnections()
	}
}

// A frameBody is a request's body that knows whether anybody began to read it.
// Headers alone are no request: a frame never touched never ran.
type frameBody struct {
	touched *atomic.Bool
	frame   []byte
	read    int
}

func (b *frameBody) Read(p []byte) (int, error) {
	b.touched.Store(true)
	if b.read == len(b.frame) {
		return 0, io.EOF
	}
	n := copy(p, b.frame[b.read:])
	b.read += n
	return n, nil
}

func (b *frameBody) Close() error { return nil }

func (b *frameBody) again() (io.ReadCloser, error) {
	return &frameBody{touched: b.touched, frame: b.frame}, nil
}

// discard reads the little that is left of a response nobody wants, so that the
// connection can be used again, and closes it.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // a longer rest costs the connection
	_ = resp.Body.Close()                         // nothing can be done about it
}

func statusText(code int) string {
	if text := http.StatusText(code); text != "" {
		return text
	}
	return "(unknown status)"
}

var errNoStream = errors.New("the server does not offer a stream")
