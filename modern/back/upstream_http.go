package back

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/http1"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

const (
	// maxRejection bounds how much of an HTTP error's body is looked at.
	maxRejection = 64 << 10
	// maxExpected is the most room that an answer gets before any of it is there.
	maxExpected = 2 << 20
)

// An httpLink reaches a server over Streamable HTTP. Each request is a POST whose
// goroutine reads the answer by itself; the link has no goroutine of its own.
//
// Spec: 2026-07-28, basic/transports/streamable-http.
type httpLink struct {
	opts *Options
	rt   http.RoundTripper
	own  *http1.Transport // rt, if the link made it itself
	url  *url.URL
	base http.Header // of every request; never changed
	news func(c *upcall, m *wire.Message)

	size      atomic.Int64          // of the last answer: what the next is expected to take
	slowTails atomic.Int32          // answers in a row whose stream stayed open after them
	odd       transport.WarnLimiter // tells of what can't be read

	breaker breaker

	stop context.CancelCauseFunc // ends what is open, see live
	live context.Context         // ends with close
}

// newHTTPLink trusts that opts were checked. news hears of notifications that are
// not a caller's.
func newHTTPLink(opts *Options, news func(*upcall, *wire.Message)) *httpLink {
	u, _ := url.Parse(opts.URL) // checked
	l := &httpLink{opts: opts, rt: opts.RoundTripper, url: u, base: baseHeader(opts.Headers), news: news}
	l.live, l.stop = context.WithCancelCause(context.Background())
	if l.rt == nil {
		l.own = http1.NewTransport(transport.NewHTTP(opts.Timeouts.Connect))
		l.rt = l.own
	}
	return l
}

// exchange implements link.
func (l *httpLink) exchange(ctx context.Context, c *upcall) (answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(l.live, func() { cancel(context.Cause(l.live)) })
	end := func() { unhook(); cancel(nil) }
	resp, err := l.post(ctx, c)
	if err != nil {
		end()
		return answer{}, err
	}
	a, err := l.reply(ctx, end, c, resp)
	if err != nil {
		end()
	}
	return a, err
}

// post sends the request. The body is of a type that net/http knows to be in
// memory: it then writes headers and body at once, and by itself repeats a request
// of which nothing left on a connection that the server had closed.
func (l *httpLink) post(ctx context.Context, c *upcall) (*http.Response, error) {
	if err := l.breaker.open(); err != nil {
		return nil, &failure{cause: err, fate: notSent}
	}
	began := time.Now()
	h := maps.Clone(l.base)
	maps.Copy(h, c.header)
	body := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.frame)), nil }
	first, _ := body() // never fails
	resp, err := l.rt.RoundTrip((&http.Request{
		Method:        http.MethodPost,
		URL:           l.url,
		Host:          l.url.Host,
		Header:        h,
		Body:          first,
		GetBody:       body,
		ContentLength: int64(len(c.frame)),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
	}).WithContext(ctx))
	switch {
	case err == nil:
		l.breaker.heal()
		return resp, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, http1.ErrNotSent):
		return nil, &failure{cause: transport.Cause(err), fate: notSent, again: true}
	case transport.Unsent(err):
		l.breaker.trip(began, transport.Cause(err))
		return nil, &failure{cause: transport.Cause(err), fate: notSent}
	}
	return nil, &failure{cause: transport.Cause(err), fate: mayHaveRun, again: true}
}

// reply reads the answer to the request c. end is called when the answer is given
// back, or by the caller if there is none.
func (l *httpLink) reply(ctx context.Context, end func(), c *upcall, resp *http.Response) (answer, error) {
	switch kind := mediaType(resp.Header); {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return l.rejected(ctx, end, c, resp)
	case resp.StatusCode == http.StatusAccepted, resp.StatusCode == http.StatusNoContent:
		discard(resp)
		l.opts.Doubt("it accepted " + c.method + " without answering it")
		return answer{}, &failure{cause: errors.New("it accepted the request without answering it"), fate: mayHaveRun}
	case kind == protocol.TypeStream:
		return l.readStream(ctx, end, c, resp)
	case kind == protocol.TypeJSON:
		return l.readJSON(ctx, end, c, resp)
	default:
		discard(resp)
		return answer{}, &failure{cause: &transport.KindError{Kind: kind}, fate: mayHaveRun}
	}
}

// readJSON takes the answer from a JSON body. The body is read to its end: the
// connection is free before the caller is done with the answer.
func (l *httpLink) readJSON(ctx context.Context, end func(), c *upcall, resp *http.Response) (answer, error) {
	text, err := transport.ReadAll(c.from(resp.Body), l.expect(resp), l.opts.MaxMessage)
	_ = resp.Body.Close() // it was read
	if err != nil {
		transport.PutBuffer(text)
		return answer{}, l.readFailure(ctx, err)
	}
	m, err := wire.Parse(text, reading)
	if err != nil {
		transport.PutBuffer(text)
		return answer{}, l.unreadable(err)
	}
	if m.Kind() == wire.Response && !c.is(m.ID) && !m.ID.IsZero() {
		return answer{}, l.foreign(resp, m.ID)
	}
	if m.Kind() != wire.Response {
		return answer{}, &failure{cause: errors.New("it answered something else"), fate: mayHaveRun}
	}
	l.size.Store(int64(len(text)))
	end()
	return answerOf(&m, func() { transport.PutBuffer(text) }), nil
}

// foreign ends the connection on which the answer to another request came: that of
// this one may come next.
func (l *httpLink) foreign(resp *http.Response, id wire.ID) error {
	if !http1.EndConnection(resp) {
		_ = resp.Body.Close() // it is read no further
		if t, ok := l.rt.(interface{ CloseIdleConnections() }); ok {
			t.CloseIdleConnections() // it may be among them
		}
	}
	l.opts.Metrics.Dropped(l.opts.Name, "foreign answer")
	return &failure{cause: fmt.Errorf("it answered another request, of id %s, so that the connection was closed", shorten(id.String())), fate: mayHaveRun}
}

func (l *httpLink) unreadable(err error) error {
	return &failure{cause: fmt.Errorf("its answer can't be read: %v", err), fate: mayHaveRun}
}

// expect guesses how long an answer will be, in bytes.
func (l *httpLink) expect(resp *http.Response) int {
	if resp.ContentLength >= 0 {
		return int(min(resp.ContentLength, int64(l.opts.MaxMessage), maxExpected))
	}
	return int(min(l.size.Load(), maxExpected))
}

// readFailure tells a broken answer from one that nobody waits for any more.
func (l *httpLink) readFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var large *transport.TooLongError
	var short *mcp.ShortageError
	switch {
	case errors.As(err, &short):
		return short // no fault of the server's
	case errors.As(err, &large):
		beyondLimit(l.opts, large.Limit)
	}
	return &failure{
		cause: fmt.Errorf("reading its answer: %w", transport.Cause(err)),
		fate:  mayHaveRun,
		again: !errors.As(err, &large),
	}
}

// beyondLimit counts and tells of a message that is not read.
func beyondLimit(opts *Options, limit int) {
	opts.Metrics.Limit(opts.Name, limits.UpstreamMessage.Key)
	opts.Logger.Warn("skipping message of server beyond the limit", "bytes", limit)
}

// rejected reads an HTTP error: a JSON-RPC error that answers the request,
// whatever the status, or a failure.
func (l *httpLink) rejected(ctx context.Context, end func(), c *upcall, resp *http.Response) (answer, error) {
	text, err := transport.ReadAll(resp.Body, l.expect(resp), maxRejection)
	_ = resp.Body.Close() // whatever came is all there is
	if ctx.Err() != nil {
		return answer{}, context.Cause(ctx)
	}
	var m wire.Message
	if err == nil {
		m, err = wire.Parse(text, reading)
	}
	status := &statusError{code: resp.StatusCode, slash: transport.WantsSlash(l.url, resp)}
	isError := err == nil && m.Error != nil
	if isError && !status.aboutUs() && (c.is(m.ID) || m.ID.IsZero() && spec.ModernError(m.Error.Code)) {
		end()
		a := answerOf(&m, nil)
		a.status = resp.StatusCode
		return a, nil
	}
	if isError {
		status.note = shorten(m.Error.Message)
	}
	if status.legacyLooking() {
		l.opts.Doubt("it answered " + c.method + " with " + status.Error())
	}
	return answer{}, &failure{cause: status, fate: status.fate()}
}

// close implements link: what is open is closed, and idle connections are let go.
func (l *httpLink) close(context.Context) error {
	l.stop(mcp.ErrShutdown)
	if l.own != nil {
		l.own.CloseIdleConnections()
	}
	return nil
}

// discard reads the little that is left of a response nobody wants, so that the
// connection can be used again, and closes it.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // a longer rest costs the connection
	_ = resp.Body.Close()                         // nothing can be done about it
}

// mediaType returns the media type of a response without its parameters.
func mediaType(h http.Header) string {
	v := h.Get("Content-Type")
	switch v { // the usual, without an allocation
	case protocol.TypeJSON, protocol.TypeStream:
		return v
	}
	kind, _, err := mime.ParseMediaType(v)
	if err != nil {
		return strings.ToLower(v)
	}
	return kind
}

var _ link = (*httpLink)(nil)
