package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/http1"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// maxRejection limits how much of an HTTP error's body is read that is not JSON, in bytes.
	maxRejection = 64 << 10
	// maxExpected is the largest buffer that is allocated before any of a response has
	// arrived, in bytes.
	maxExpected = 2 << 20
)

// A Reply is the reply to one HTTP request: messages up to the response, as JSON or as an
// event stream. One goroutine reads it, until Next returns an error, or Response, Discard
// or Close is called.
type Reply struct {
	h    *HTTP
	ctx  context.Context // the request's, which lasts as long as the Reply
	call *Call           // nil if no response is expected
	resp *http.Response
	msg  wire.Message // the last result of Next

	// Busy reports whether a request waits for the server. If none does, messages that are
	// not needed are read more slowly. Nil means always.
	Busy func() bool
	// After, which may be nil, gets the messages that follow the response on a stream or in a
	// batch. It is called when the response is freed.
	After func(m *wire.Message)

	stream stream // its reader is nil if the body is not a stream
	text   []byte // the JSON body; nil before it was read
	read   bool   // the JSON body was read
	batch  []byte // the rest of the last batch, which Next has not returned yet; nil if there is none
}

// Status returns the HTTP status.
func (r *Reply) Status() int { return r.resp.StatusCode }

// Header returns the HTTP header.
func (r *Reply) Header() http.Header { return r.resp.Header }

// Body returns the body, for a stream that is read elsewhere.
func (r *Reply) Body() io.ReadCloser { return r.resp.Body }

// IsError reports whether the status is an error; see Rejection.
func (r *Reply) IsError() bool { return r.resp.StatusCode < 200 || r.resp.StatusCode > 299 }

// IsStream reports whether the body is an event stream.
func (r *Reply) IsStream() bool { return mediaType(r.resp.Header) == spec.TypeStream }

// Next returns the next message. If there is a call, a message of kind Response is its
// response; the reply owns its bytes until Free of what Response returns.
//
// The error is a [*Failure], a [*mcp.ShortageError], or the cause of the end of the
// request's context. Then the reply is closed. Messages that can't be read are logged and
// skipped, except the response.
func (r *Reply) Next() (*wire.Message, error) {
	m, err := r.next()
	if err != nil {
		r.Close()
	}
	return m, err
}

func (r *Reply) next() (*wire.Message, error) {
	if m, err := r.nextOfBatch(); m != nil || err != nil {
		return m, err
	}
	switch {
	case r.stream.rd != nil:
		return r.nextOfStream()
	case r.read:
		return nil, errOther
	}
	return r.first()
}

// first returns the first message.
func (r *Reply) first() (*wire.Message, error) {
	switch kind := mediaType(r.resp.Header); {
	case r.IsError():
		status, _ := r.Rejection()
		return nil, status.Failure()
	case kind == spec.TypeStream:
		r.openStream()
		return r.nextOfStream()
	case r.resp.StatusCode == http.StatusAccepted, r.resp.StatusCode == http.StatusNoContent:
		r.Discard()
		return nil, &Failure{Cause: ErrAccepted, Fate: MayHaveRun}
	case kind == spec.TypeJSON:
		return r.whole()
	default:
		r.Discard()
		return nil, &Failure{Cause: &transport.KindError{Kind: kind}, Fate: MayHaveRun}
	}
}

// whole reads a JSON body to its end, so that the connection is free while the response is
// in use.
func (r *Reply) whole() (*wire.Message, error) {
	r.read = true
	text, err := transport.ReadAll(r.call.from(r.resp.Body), r.expected(), r.h.opts.MaxMessage)
	_ = r.resp.Body.Close() // it has been read
	r.text = text
	if err != nil {
		return nil, r.broken(err)
	}
	r.h.size.Store(int64(len(text)))
	m, err := r.h.opts.parse(text)
	switch {
	case err == nil && m.Kind() != wire.Response && !r.h.reading.Keep:
		return nil, errOther
	case err == nil && m.Kind() != wire.Response:
		r.text = nil // m refers to it
		return r.got(m)
	case err == nil:
		return r.got(m)
	case isBatch(r.h.reading, text, err):
		r.text, r.batch = nil, text // its messages refer to it
		return r.next()
	}
	return nil, unreadable(err)
}

func unreadable(err error) error { return &Failure{Cause: &UnreadableError{err}, Fate: MayHaveRun} }

// nextOfBatch returns the next message of the batch, nil if there is none. A server may put millions
// of texts into one that are no messages: they take neither memory nor depth of the stack.
func (r *Reply) nextOfBatch() (*wire.Message, error) {
	for r.batch != nil {
		var text []byte
		if text, r.batch = wire.CutElement(r.batch); text == nil {
			break // it was empty
		}
		m, err := r.h.opts.parse(text)
		switch {
		case err == nil:
			return r.got(m)
		case !r.skip(text, err):
			return nil, unreadable(err)
		}
	}
	return nil, nil
}

// got returns a message that was read.
func (r *Reply) got(m wire.Message) (*wire.Message, error) {
	if m.Kind() == wire.Response && r.call != nil && !r.call.Is(m.ID) {
		if !m.ID.IsZero() {
			return nil, r.foreign(m.ID)
		}
		r.h.opts.Quirks.Met(quirks.AnswerWithoutID, "")
	}
	r.msg = m
	return &r.msg, nil
}

// skip counts and logs a message that can't be read because of err. It returns false for
// the response, which can't be skipped.
func (r *Reply) skip(text []byte, err error) bool {
	if r.call != nil && r.call.Is(answered(text, err)) {
		return false
	}
	r.h.opts.Drop("unreadable")
	r.h.odd.Warn(r.h.opts.Logger, "skipping unreadable message of server", "error", err)
	return true
}

// Response returns the response, which was the last result of Next. Next must not be called
// afterwards.
func (r *Reply) Response() Response {
	return ResponseOf(&r.msg, r.release)
}

// Continues reports whether more may follow the last message of Next.
func (r *Reply) Continues() bool { return r.stream.rd != nil || r.batch != nil }

// release frees the bytes of the response.
func (r *Reply) release() {
	if r.Continues() {
		r.finish()
	}
	r.Close()
	r.cancel()
}

// cancel ends the request's context.
func (r *Reply) cancel() {
	if r.call != nil && r.call.Cancel != nil {
		r.call.Cancel(nil)
	}
}

// foreign closes the connection on which the response to another request arrived: the next
// response on it may be that of this one.
func (r *Reply) foreign(id wire.ID) error {
	if !http1.EndConnection(r.resp) {
		_ = r.resp.Body.Close() // it is not read any further
		if t, ok := r.h.rt.(interface{ CloseIdleConnections() }); ok {
			t.CloseIdleConnections() // it may be one of them
		}
	}
	r.h.opts.Drop("foreign answer")
	return &Failure{Cause: fmt.Errorf("it answered another request, of id %s, so that the connection was closed", mcp.Shorten(id.String())), Fate: MayHaveRun}
}

// expected estimates the length of the response, in bytes.
func (r *Reply) expected() int {
	if r.resp.ContentLength >= 0 {
		return int(min(r.resp.ContentLength, int64(r.h.opts.MaxMessage), maxExpected))
	}
	return int(min(r.h.size.Load(), maxExpected))
}

// broken returns the error of a reply that broke off, or the cause if the request's context
// has ended.
func (r *Reply) broken(err error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	var large *transport.TooLongError
	var short *mcp.ShortageError
	switch {
	case errors.As(err, &short):
		return short // not an error of the server
	case errors.As(err, &large):
		r.h.opts.BeyondLimit(large.Limit)
	}
	return &Failure{
		Cause: fmt.Errorf("reading its response: %w", transport.Cause(err)),
		Fate:  MayHaveRun,
		Again: large == nil,
	}
}

// Rejection reads the body of an HTTP error, and closes the reply. m is the JSON-RPC error
// in it; nil if there is none.
func (r *Reply) Rejection() (status *StatusError, m *wire.Message) {
	limit, isJSON := maxRejection, mediaType(r.resp.Header) == spec.TypeJSON
	if isJSON {
		limit = r.h.opts.MaxMessage // it may be an answer, with all that it says
	}
	text, err := transport.ReadAll(r.call.from(r.resp.Body), r.expected(), limit)
	r.Close() // errors are ignored: any part of the body helps
	if err == nil {
		r.msg, err = r.h.opts.parse(text)
	}
	status = &StatusError{Code: r.resp.StatusCode, Slash: transport.WantsSlash(r.h.url, r.resp), Target: transport.RedirectTarget(r.h.url, r.resp)}
	status.Login = strings.Contains(strings.Join(r.resp.Header.Values("WWW-Authenticate"), ","), "resource_metadata=")
	if err != nil || r.msg.Error == nil {
		if status.Code == http.StatusForbidden || status.Code >= 500 {
			status.Note = noteIn(r.resp.Header.Get("Content-Type"), text)
		}
		if isJSON {
			status.Note = cmp.Or(r.cutShort(err), status.Note)
		}
		return status, nil
	}
	status.Note, status.Away = mcp.Shorten(r.msg.Error.Message), mcp.Unavailable(r.msg.Error)
	return status, &r.msg
}

// cutShort returns why an error of the server was not read to its end, with err, if a limit of the
// gateway is the reason, and counts that; empty if not.
func (r *Reply) cutShort(err error) string {
	var large *transport.TooLongError
	var short *mcp.ShortageError
	switch {
	case errors.As(err, &short):
		return short.Error()
	case errors.As(err, &large):
		r.h.opts.BeyondLimit(large.Limit)
		return fmt.Sprintf("its text has more than %d bytes; %s if that is normal for it", large.Limit, limits.UpstreamMessage.Raise())
	}
	return ""
}

// noteIn returns what a body that is no message says of an error, quoted; empty if it is markup, or
// empty.
func noteIn(kind string, body []byte) string {
	kind, _, _ = strings.Cut(kind, ";")
	switch strings.TrimSpace(strings.ToLower(kind)) {
	case "text/plain", "application/json", "application/problem+json":
	default:
		return ""
	}
	body = bytes.TrimSpace(body)
	for k, v := range wire.Members(checked(body)) {
		if k.Is("error_description") || k.Is("message") || k.Is("detail") || k.Is("error") {
			body = []byte(wire.Unquote(v))
			break
		}
	}
	if len(body) == 0 {
		return ""
	}
	return strconv.Quote(mcp.Shorten(redact.Looks(string(body))))
}

// checked returns text that is JSON, and else nothing.
func checked(text []byte) []byte {
	if json.Valid(text) {
		return text
	}
	return nil
}

// Discard closes a reply that is not needed. It first reads a short rest, so that the
// connection can be used again. A stream may never end.
func (r *Reply) Discard() {
	if !r.IsStream() {
		_, _ = io.CopyN(io.Discard, r.resp.Body, 4<<10) // if the rest is longer, the connection is closed
	}
	_ = r.resp.Body.Close() // an error has no consequences
}

// Close ends the reply. It may be called more than once.
func (r *Reply) Close() {
	_ = r.resp.Body.Close() // the rest is not needed
	if r.text != nil {
		transport.PutBuffer(r.text)
	}
	if r.stream.buf != nil {
		transport.PutBuffer(r.stream.buf)
	}
	r.text, r.stream.buf = nil, nil
}
