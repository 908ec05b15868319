package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/http1"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// An HTTP sends requests to one URL. It is safe for concurrent use.
type HTTP struct {
	opts    *Options
	reading Reading
	url     *url.URL
	rt      http.RoundTripper
	own     *http1.Transport // rt, if it was made here

	size      atomic.Int64          // of the last response: what the next is expected to take
	slowTails atomic.Int32          // responses in a row whose stream stayed open after them
	odd       transport.WarnLimiter // tells of what can't be read
}

// Reading says how a server's messages are read.
type Reading struct {
	// Batches says that an array holds messages, as in revision 2025-03-26.
	Batches bool
	// Keep says that messages which are no response to the call are for whoever gets them
	// to keep. Otherwise they are valid until the next is read.
	Keep bool
}

// NewHTTP returns the way to the server at o.URL, which was checked.
func NewHTTP(o *Options, r Reading) *HTTP {
	u, _ := url.Parse(o.URL)
	h := &HTTP{opts: o, reading: r, url: u, rt: o.RoundTripper}
	if h.rt == nil {
		h.own = http1.NewTransport(transport.NewHTTP(o.Timeouts.Connect))
		h.rt = h.own
	}
	return h
}

// At returns the way to another URL of the same origin.
func (h *HTTP) At(u *url.URL) *HTTP {
	return &HTTP{opts: h.opts, reading: h.reading, url: u, rt: h.rt}
}

// URL returns where requests go. It is not to be changed.
func (h *HTTP) URL() *url.URL { return h.url }

// Post sends frame and returns the reply once its header has come. c is the call that
// frame is of, nil if it is none. header is not changed, and may be shared. The error is a
// [*Failure], or the cause with which ctx ended.
//
// The body is of a type that net/http knows to be in memory. It then writes header and
// body at once, and by itself repeats a request of which nothing left on a connection that
// the server had closed.
func (h *HTTP) Post(ctx context.Context, c *Call, header http.Header, frame []byte) (*Reply, error) {
	body := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(frame)), nil }
	req := h.request(ctx, http.MethodPost, header)
	req.Body, _ = body() // never fails
	req.GetBody = body
	req.ContentLength = int64(len(frame))
	return h.send(ctx, c, req)
}

// Get is Post without a body, for a stream of messages.
func (h *HTTP) Get(ctx context.Context, c *Call, header http.Header) (*Reply, error) {
	return h.send(ctx, c, h.request(ctx, http.MethodGet, header))
}

// Delete asks for the end of the session that header names.
func (h *HTTP) Delete(ctx context.Context, header http.Header) error {
	r, err := h.send(ctx, nil, h.request(ctx, http.MethodDelete, header))
	if err == nil {
		r.Discard()
	}
	return err
}

// Send posts a message that has no response.
func (h *HTTP) Send(ctx context.Context, header http.Header, frame []byte) error {
	r, err := h.Post(ctx, nil, header, frame)
	if err != nil {
		return err
	}
	r.Discard()
	if r.Status() > 299 {
		return &StatusError{Code: r.Status()}
	}
	return nil
}

// blank is copied for each request.
var blank http.Request

func (h *HTTP) request(ctx context.Context, method string, header http.Header) *http.Request {
	req := blank.WithContext(ctx)
	req.Method, req.URL, req.Host, req.Header = method, h.url, h.url.Host, header
	req.Proto, req.ProtoMajor, req.ProtoMinor = "HTTP/1.1", 1, 1
	return req
}

func (h *HTTP) send(ctx context.Context, c *Call, req *http.Request) (*Reply, error) {
	resp, err := h.rt.RoundTrip(req)
	if err != nil {
		return nil, sendFailure(ctx, err)
	}
	return &Reply{h: h, ctx: ctx, call: c, resp: resp}, nil
}

// sendFailure tells what became of a request to which no header came.
func sendFailure(ctx context.Context, err error) error {
	closed := errors.Is(err, http1.ErrNotSent)
	unsent := closed || transport.Unsent(err)
	switch {
	case ctx.Err() != nil && unsent:
		return &Failure{Cause: context.Cause(ctx), Fate: NotSent}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case unsent:
		return &Failure{Cause: transport.Cause(err), Fate: NotSent, Again: closed}
	}
	return &Failure{Cause: transport.Cause(err), Fate: MayHaveRun, Again: true}
}

// Close lets go of idle connections.
func (h *HTTP) Close() {
	if h.own != nil {
		h.own.CloseIdleConnections()
	}
}

// mediaType returns the media type of a response without its parameters.
func mediaType(h http.Header) string {
	v := h.Get("Content-Type")
	switch v { // the usual, without an allocation
	case spec.TypeJSON, spec.TypeStream:
		return v
	}
	kind, _, err := mime.ParseMediaType(v)
	if err != nil {
		return strings.ToLower(v)
	}
	return kind
}
