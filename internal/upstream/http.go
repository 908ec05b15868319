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
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// An HTTP sends requests to one URL. It is safe for concurrent use.
type HTTP struct {
	opts    *Options
	reading Reading
	url     *url.URL
	rt      http.RoundTripper
	own     *http1.Transport // rt, if NewHTTP created it
	behalf  Behalf           // of requests that are not calls; see As

	size      atomic.Int64          // of the last response: the expected size of the next
	slowTails atomic.Int32          // responses in a row whose stream stayed open
	odd       transport.WarnLimiter // logs what can't be read
}

// Reading says how a server's messages are read.
type Reading struct {
	// Batches says that an array contains messages, as in revision 2025-03-26.
	Batches bool
	// Keep says that messages other than the response belong to who gets them. Otherwise
	// they are valid until the next one is read.
	Keep bool
}

// NewHTTP returns an HTTP for the server at o.URL, which must be valid.
func NewHTTP(o *Options, r Reading) *HTTP {
	u, _ := url.Parse(o.URL)
	h := &HTTP{opts: o, reading: r, url: u, rt: o.RoundTripper}
	if h.rt == nil {
		h.own = http1.NewTransport(transport.NewHTTP(o.Settings.Timeouts.Connect, o.TLS))
		h.rt = h.own
	}
	return h
}

// At returns an HTTP for another URL of the same origin.
func (h *HTTP) At(u *url.URL) *HTTP {
	return &HTTP{opts: h.opts, reading: h.reading, url: u, rt: h.rt, behalf: h.behalf}
}

// As returns an HTTP whose requests are on behalf of a principal.
func (h *HTTP) As(p mcp.Principal) *HTTP {
	if h.opts.Credentials == nil || p == h.behalf.Principal {
		return h // without Credentials it does not matter
	}
	return &HTTP{opts: h.opts, reading: h.reading, url: h.url, rt: h.rt, behalf: Behalf{Principal: p}}
}

// URL returns the URL of requests. It must not be changed.
func (h *HTTP) URL() *url.URL { return h.url }

// Post sends frame and returns the reply when its header has arrived. c is the call of
// frame; nil if there is none. header is not changed, and may be shared. The error is a
// [*Failure], or the cause of ctx's end.
//
// The type of the body is one that net/http knows to be in memory. So it sends header and
// body in one write, and it repeats the request itself if a connection turns out to be
// closed before anything was sent.
func (h *HTTP) Post(ctx context.Context, c *Call, header http.Header, frame []byte) (*Reply, error) {
	x := h.begin(ctx, c, http.MethodPost, header)
	x.carry(frame)
	return x.send()
}

// Get is Post without a body, for an event stream.
func (h *HTTP) Get(ctx context.Context, c *Call, header http.Header) (*Reply, error) {
	return h.begin(ctx, c, http.MethodGet, header).send()
}

// Delete ends the session that header names.
func (h *HTTP) Delete(ctx context.Context, header http.Header) error {
	r, err := h.begin(ctx, nil, http.MethodDelete, header).send()
	if err == nil {
		r.Discard()
	}
	return err
}

// Send posts a message that has no response. It returns the status of success.
func (h *HTTP) Send(ctx context.Context, header http.Header, frame []byte) (status int, err error) {
	r, err := h.Post(ctx, nil, header, frame)
	if err != nil {
		return 0, err
	}
	r.Discard()
	if r.Status() > 299 {
		return 0, &StatusError{Code: r.Status()}
	}
	return r.Status(), nil
}

// An exchange is a request and its Reply, in one allocation.
type exchange struct {
	reply Reply
	req   http.Request
	frame []byte // the request's body
	body  bytes.Reader
}

// blank is copied for each request.
var blank http.Request

func (h *HTTP) begin(ctx context.Context, c *Call, method string, header http.Header) *exchange {
	x := &exchange{reply: Reply{h: h, ctx: ctx, call: c}}
	header = h.opts.Renewed.over(header)
	x.req = *blank.WithContext(ctx)
	x.req.Method, x.req.URL, x.req.Host, x.req.Header = method, h.url, h.url.Host, header
	x.req.Proto, x.req.ProtoMajor, x.req.ProtoMinor = "HTTP/1.1", 1, 1
	return x
}

// carry gives the request a body.
func (x *exchange) carry(frame []byte) {
	x.frame = frame
	x.body.Reset(frame)
	x.req.Body = io.NopCloser(&x.body)
	x.req.GetBody = x.again
	x.req.ContentLength = int64(len(frame))
}

// again is the request's GetBody.
func (x *exchange) again() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(x.frame)), nil
}

// send sends the request, with credentials if there are any.
func (x *exchange) send() (*Reply, error) {
	if x.reply.h.opts.Credentials != nil {
		return x.authorized()
	}
	return x.roundTrip()
}

func (x *exchange) roundTrip() (r *Reply, err error) {
	r = &x.reply
	x.observeSent()
	if r.resp, err = x.exchange(); err != nil {
		return nil, sendFailure(r.ctx, err)
	}
	x.observeReceived()
	return r, nil
}

// exchange sends the request, with the call's own fields and the context of its trace.
func (x *exchange) exchange() (*http.Response, error) {
	var few [7]http1.Field
	fields := x.fields(few[:0])
	if lean, ok := x.reply.h.rt.(*http1.Transport); ok {
		return lean.RoundTripWith(&x.req, fields)
	}
	return x.reply.h.rt.RoundTrip(http1.Merged(&x.req, fields))
}

// fields appends those of the header that the request alone has.
func (x *exchange) fields(to []http1.Field) []http1.Field {
	if x.req.Method != http.MethodPost {
		return to
	}
	return x.reply.call.fields(to)
}

// sendFailure returns the error of a request that got no response header.
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

// Close closes idle connections.
func (h *HTTP) Close() {
	if h.own != nil {
		h.own.CloseIdleConnections()
	}
}

// mediaType returns the media type of a response without its parameters.
func mediaType(h http.Header) string {
	v := h.Get("Content-Type")
	switch v { // the usual case, without an allocation
	case spec.TypeJSON, spec.TypeStream:
		return v
	}
	kind, _, err := mime.ParseMediaType(v)
	if err != nil {
		return strings.ToLower(v)
	}
	return kind
}
