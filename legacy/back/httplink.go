package back

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	acceptPost = "application/json, text/event-stream" // some servers compare it literally
	acceptGet  = "text/event-stream"

	// acceptedTimeout bounds the wait for an answer on the GET stream after a
	// request was merely accepted.
	acceptedTimeout = 5 * time.Second
	// maxRejection bounds how much of an HTTP error's body is looked at.
	maxRejection = 64 << 10
	// maxExpected is the most room that an answer gets before any of it is there.
	maxExpected = 2 << 20
)

// An httpLink is a session over Streamable HTTP. A call's goroutine posts the
// request and reads its answer by itself; only the GET stream has a goroutine.
//
// Spec: 2025-11-25, basic/transports, Streamable HTTP.
type httpLink struct {
	s *wireSession
	e *endpoint

	// names is replaced twice: when initialize is answered, and when the revision
	// is settled.
	names atomic.Pointer[names]

	stream atomic.Pointer[getStream] // nil before listen

	refusal int // the status with which initialize was refused; 0 if it was not

	// slowTails counts the answers in a row whose stream stayed open after them.
	slowTails atomic.Int32
}

// names are the session's id and the headers that carry it. They are shared by
// all requests and never changed.
type names struct {
	id        string // Mcp-Session-Id; empty if the server gave none
	post, get http.Header
}

func newHTTPLink(s *wireSession, e *endpoint) *httpLink {
	l := &httpLink{s: s, e: e}
	l.adopt("", "")
	s.link = l
	return l
}

// adopt makes requests carry a session id and a revision.
func (l *httpLink) adopt(id string, revision spec.Revision) {
	n := &names{
		id:   id,
		post: l.e.header(acceptPost, id, revision),
		get:  l.e.header(acceptGet, id, revision),
	}
	n.get.Del("Content-Type")
	l.names.Store(n)
}

// id returns the Mcp-Session-Id, empty if there is none.
func (l *httpLink) id() string { return l.names.Load().id }

// exchange implements link.
func (l *httpLink) exchange(ctx context.Context, c *wireCall, frame []byte) error {
	resp, err := l.e.post(ctx, l.names.Load().post, frame)
	if err != nil && unsent(err) {
		return &failure{cause: cause(err), fate: notSent}
	}
	if err != nil {
		return &failure{cause: cause(err), fate: mayHaveRun, again: true}
	}
	c.wasTaken()
	if c.method == spec.MethodInitialize && !c.passed { // a second one, of a client's, opens nothing
		l.adopt(resp.Header.Get(spec.HeaderSession), "")
		if resp.StatusCode > 299 {
			l.refusal = resp.StatusCode
		}
	}
	at, err := l.reply(ctx, c, resp)
	if err != nil || at.settled {
		return err
	}
	return l.resume(ctx, c, at)
}

// reply reads the answer to the request c. If it is a stream that ended before
// the answer, the position tells where to resume.
func (l *httpLink) reply(ctx context.Context, c *wireCall, resp *http.Response) (position, error) {
	switch kind := mediaType(resp.Header); {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return position{settled: true}, l.s.rejected(ctx, c, resp, l.id() != "")
	case kind == "text/event-stream":
		return l.readStream(ctx, c, resp)
	case kind == "application/json" && resp.StatusCode != http.StatusAccepted:
		return position{settled: true}, l.readJSON(ctx, c, resp)
	case resp.StatusCode == http.StatusAccepted, resp.StatusCode == http.StatusNoContent:
		discard(resp)
		return position{settled: true}, l.accepted(ctx)
	default:
		discard(resp)
		return position{settled: true}, &failure{cause: &transport.KindError{Kind: kind}, fate: mayHaveRun}
	}
}

// accepted waits a little for the answer to a request that was accepted like a
// notification: it may come on the GET stream.
func (l *httpLink) accepted(ctx context.Context) error {
	if l.open() {
		if err := backoff.Wait(ctx, acceptedTimeout); err != nil {
			return err
		}
	}
	return &failure{cause: errors.New("it accepted the request without answering it"), fate: mayHaveRun}
}

// readJSON takes the answer from a JSON body. The body is read to its end: the
// connection is free before the caller is done with the answer.
func (l *httpLink) readJSON(ctx context.Context, c *wireCall, resp *http.Response) error {
	text, err := transport.ReadAll(c.in.From(resp.Body), l.expect(resp), l.s.opts.MaxMessage)
	_ = resp.Body.Close() // it was read
	if err != nil {
		transport.PutBuffer(text)
		return l.readFailure(ctx, err)
	}
	l.e.size.Store(int64(len(text)))
	m, err := wire.Parse(text, reading)
	switch {
	case err == nil && m.Kind() == wire.Response && (c.is(m.ID) || m.ID.IsZero()):
		c.settle(answerOf(&m, func() { transport.PutBuffer(text) }))
		return nil
	case err == nil && m.Kind() == wire.Response:
		return l.foreign(resp, m.ID)
	case err == nil || isEnvelope(err) && wire.IsArray(text):
		l.s.receiveText(ctx, text, c, nil) // it keeps text
	default:
		c.settle(answer{err: l.s.badAnswer(err)})
		transport.PutBuffer(text)
		return nil
	}
	return &failure{cause: errors.New("it answered something else"), fate: mayHaveRun}
}

// foreign ends the connection on which the answer to another request came: that of
// this one may come next.
func (l *httpLink) foreign(resp *http.Response, id wire.ID) error {
	l.e.endConnection(resp)
	l.s.drop("foreign answer")
	return &failure{cause: fmt.Errorf("it answered another request, of id %s, so that the connection was closed", shorten(id.String())), fate: mayHaveRun}
}

// expect guesses how long an answer will be, in bytes.
func (l *httpLink) expect(resp *http.Response) int {
	if resp.ContentLength >= 0 {
		return int(min(resp.ContentLength, int64(l.s.opts.MaxMessage), maxExpected))
	}
	return int(min(l.e.size.Load(), maxExpected))
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
		l.s.beyondLimit(large.Limit)
	}
	return &failure{
		cause: fmt.Errorf("reading its answer: %w", cause(err)),
		fate:  mayHaveRun,
		again: large == nil,
	}
}

// rejected reads an HTTP error: a JSON-RPC error that answers the request, or
// the news that the session is gone, or a failure. named says that the request named
// a session that the server may have lost.
//
// Spec: 2025-11-25, basic/transports, Session Management. Many servers say 400
// where it says 404; but some say either of a method or a name that they don't
// know, too, so without the error of a lost session neither ends a session that
// still answers: one client's call would end everybody's.
func (s *wireSession) rejected(ctx context.Context, c *wireCall, resp *http.Response, named bool) error {
	text, err := transport.ReadAll(resp.Body, int(max(0, min(resp.ContentLength, maxRejection))), maxRejection)
	_ = resp.Body.Close() // whatever came is all there is
	var m wire.Message
	if err == nil {
		m, err = wire.Parse(text, reading)
	}
	isError := err == nil && m.Error != nil
	sessionError := resp.StatusCode == http.StatusNotFound && isError && m.Error.Code == spec.CodeSessionNotFound
	if isError && c.is(m.ID) && !sessionError {
		c.settle(answerOf(&m, nil))
		return nil
	}
	status := &statusError{code: resp.StatusCode}
	if l, ok := s.link.(*httpLink); ok { // HTTP+SSE posts to a URL of the session's own
		status.slash = transport.WantsSlash(l.e.url, resp)
	}
	if isError {
		status.note = shorten(m.Error.Message)
	}
	if isError && spec.ModernError(m.Error.Code) {
		s.opts.Doubt("it answered " + c.method + " with " + status.Error())
	}
	mayBeGone := named && (resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest)
	if mayBeGone && (sessionError || s.isGone(ctx, c.method)) {
		s.fail(status)
		return &failure{cause: status, fate: refused, lost: true}
	}
	if isError && c.passed && status.advice() == "" {
		c.settle(answerOf(&m, nil)) // it says more than the status, if without an id
		return nil
	}
	return &failure{cause: status, fate: statusFate(resp.StatusCode)}
}

// pingTimeout bounds the wait for a sign of life.
const pingTimeout = 2 * time.Second

// isGone reports whether the session gives no sign of life after what became of a
// request of method. Of ping itself nothing else can be asked. If ctx, the
// request's, ends first it is not known, and so the session stays.
func (s *wireSession) isGone(ctx context.Context, method string) bool {
	if method == spec.MethodPing || method == spec.MethodInitialize {
		return true
	}
	timed, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	_, err := s.request(timed, spec.MethodPing, nil)
	var unknown *wire.Error
	alive := err == nil || errors.As(err, &unknown) && unknown.Code == spec.CodeMethodNotFound
	return !s.alive() || !alive && ctx.Err() == nil
}

// statusFate says what a server that answered with an HTTP error did with the
// request: a client error is a refusal, anything else may have come after.
func statusFate(code int) fate {
	if code >= 300 && code <= 499 {
		return refused
	}
	return mayHaveRun
}

// shorten bounds what of a server's words goes into a message.
func shorten(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// send implements link.
func (l *httpLink) send(ctx context.Context, frame []byte) error {
	return l.e.send(ctx, l.names.Load().post, frame)
}

// negotiated implements link.
func (l *httpLink) negotiated(r spec.Revision) { l.adopt(l.id(), r) }

// listen implements link: it asks for the GET stream.
func (l *httpLink) listen(ctx context.Context) {
	g := startStream(ctx, l)
	l.stream.Store(g)
	if !l.s.alive() {
		g.close() // close may have looked before
	}
	g.await(ctx)
}

// initialized implements link: a GET stream that was refused is asked for once
// more.
func (l *httpLink) initialized(ctx context.Context) {
	l.stream.Load().retryRefused(ctx)
}

func (l *httpLink) open() bool {
	g := l.stream.Load()
	return g != nil && g.isOpen()
}

func (l *httpLink) wakes() bool { return false }

// close implements link.
//
// Spec: 2025-11-25, basic/transports, Session Management.
func (l *httpLink) close(ctx context.Context) {
	if g := l.stream.Load(); g != nil {
		g.close()
	}
	var lost *statusError
	if l.id() == "" || errors.As(l.s.ending(), &lost) {
		return // nothing there to end
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTimeout)
	defer cancel()
	resp, err := l.e.bare(ctx, http.MethodDelete, l.names.Load().get)
	if err != nil {
		l.s.log.Debug("ending session upstream", "error", cause(err))
		return
	}
	discard(resp) // 405 says that this server has no DELETE
}

// mediaType returns the media type of a response without its parameters.
func mediaType(h http.Header) string {
	v := h.Get("Content-Type")
	switch v { // the usual, without an allocation
	case "application/json", "text/event-stream":
		return v
	}
	kind, _, err := mime.ParseMediaType(v)
	if err != nil {
		return strings.ToLower(v)
	}
	return kind
}

var _ link = (*httpLink)(nil)
