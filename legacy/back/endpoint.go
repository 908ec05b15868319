package back

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/http1"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// An endpoint is a server's URL and the way there, shared by all sessions.
type endpoint struct {
	rt      http.RoundTripper
	url     *url.URL
	headers http.Header      // the config's
	own     *http1.Transport // rt, if the Back made it itself

	ids  atomic.Int64 // of requests, over all sessions: some servers keep them in one table
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
		e.own = http1.NewTransport(forOrigin())
		e.rt = e.own
	}
	return e
}

// forOrigin is a transport for one origin with many requests at a time. Bodies
// pass as they are: unpacking them costs more than loopback and data centres save.
func forOrigin() *http.Transport {
	t := &http.Transport{}
	if d, ok := http.DefaultTransport.(*http.Transport); ok {
		t = d.Clone()
	}
	t.OnProxyConnectResponse = transport.CheckProxy
	t.DisableCompression = true
	t.MaxIdleConns = 0
	t.MaxIdleConnsPerHost = 256
	// Shorter than what servers grant (Node: 5 s): a request that meets the end of
	// its connection may have run, and tools/call can't be sent again.
	t.IdleConnTimeout = 4 * time.Second
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

// post sends frame. h is shared: RoundTrippers don't change it.
//
// The body is of a type that net/http knows to be in memory, and can be read
// again: the transport then writes headers and body at once, and by itself repeats
// a request of which nothing left on a connection that the server had closed.
func (e *endpoint) post(ctx context.Context, h http.Header, frame []byte) (*http.Response, error) {
	body := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(frame)), nil }
	first, _ := body() // never fails
	return e.rt.RoundTrip((&http.Request{
		Method:        http.MethodPost,
		URL:           e.url,
		Host:          e.url.Host,
		Header:        h,
		Body:          first,
		GetBody:       body,
		ContentLength: int64(len(frame)),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
	}).WithContext(ctx))
}

// send posts a message that has no answer.
func (e *endpoint) send(ctx context.Context, h http.Header, frame []byte) error {
	resp, err := e.post(ctx, h, frame)
	if err != nil {
		return cause(err)
	}
	discard(resp)
	if resp.StatusCode > 299 {
		return &statusError{code: resp.StatusCode}
	}
	return nil
}

// endConnection ends the connection of a response that answers another request.
func (e *endpoint) endConnection(resp *http.Response) {
	if http1.EndConnection(resp) {
		return
	}
	_ = resp.Body.Close() // it is read no further
	if t, ok := e.rt.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections() // it may be among them
	}
}

// unsent reports whether a RoundTrip that failed with err had no connection to
// send anything on, or found it closed before the first byte.
func unsent(err error) bool {
	return errors.Is(err, http1.ErrNotSent) || transport.Unsent(err)
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

// discard reads the little that is left of a response nobody wants, so that the
// connection can be used again, and closes it. A stream may never end.
func discard(resp *http.Response) {
	if mediaType(resp.Header) != "text/event-stream" {
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // a longer rest costs the connection
	}
	_ = resp.Body.Close() // nothing can be done about it
}

func statusText(code int) string {
	if text := http.StatusText(code); text != "" {
		return text
	}
	return "(unknown status)"
}

var errNoStream = errors.New("the server does not offer a stream")
