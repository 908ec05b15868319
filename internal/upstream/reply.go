package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/http1"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// maxRejection bounds how much of an HTTP error's body is read.
	maxRejection = 64 << 10
	// maxExpected is the most room that a response gets before any of it is there.
	maxExpected = 2 << 20
)

// A Reply is what a server sends in reply to one HTTP request: messages up to the
// response, as JSON or as an event stream. It is read by one goroutine, until Next returns
// an error, or Response was called, or Discard or Close was.
type Reply struct {
	h    *HTTP
	ctx  context.Context // the request's: a reply is made and ends with it
	call *Call           // nil if no response is expected
	resp *http.Response
	msg  wire.Message // that Next returned last

	// Busy reports whether anybody waits for the server, which may say less that nobody
	// needs while nobody does. Nil means always.
	Busy func() bool
	// After, which may be nil, takes what follows the response on a stream. It is called
	// when the response is freed.
	After func(m *wire.Message)

	stream stream   // its reader is nil unless there is one
	text   []byte   // of a JSON body; nil before it was read
	read   bool     // the JSON body was
	batch  [][]byte // messages that came with the last and have not been returned
}

// Status returns the HTTP status.
func (r *Reply) Status() int { return r.resp.StatusCode }

// Header returns the HTTP header.
func (r *Reply) Header() http.Header { return r.resp.Header }

// Body returns the body, for a stream that is read by somebody else.
func (r *Reply) Body() io.ReadCloser { return r.resp.Body }

// IsError reports whether the status is that of an error; see Rejection.
func (r *Reply) IsError() bool { return r.resp.StatusCode < 200 || r.resp.StatusCode > 299 }

// IsStream reports whether the body is an event stream.
func (r *Reply) IsStream() bool { return mediaType(r.resp.Header) == spec.TypeStream }

// Next returns the next message. One of kind Response is the response to the call, unless
// there is none; its bytes are the reply's until Free of what Response returns.
//
// The error is a [*Failure], a [*mcp.ShortageError], or the cause with which the request's
// context ended. The reply is closed then. What can't be read is logged and skipped,
// unless it is the response.
func (r *Reply) Next() (*wire.Message, error) {
	m, err := r.next()
	if err != nil {
		r.Close()
	}
	return m, err
}

func (r *Reply) next() (*wire.Message, error) {
	switch {
	case len(r.batch) > 0:
		return r.nextOfBatch()
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

// whole reads a JSON body to its end: the connection is free before the caller is
// done with the response.
func (r *Reply) whole() (*wire.Message, error) {
	r.read = true
	text, err := transport.ReadAll(r.call.from(r.resp.Body), r.expected(), r.h.opts.MaxMessage)
	_ = r.resp.Body.Close() // it was read
	r.text = text
	if err != nil {
		return nil, r.broken(err)
	}
	r.h.size.Store(int64(len(text)))
	m, err := wire.Parse(text, parsing)
	switch {
	case err == nil && m.Kind() != wire.Response && !r.h.reading.Keep:
		return nil, errOther
	case err == nil && m.Kind() != wire.Response:
		r.text = nil // kept with the message
		return r.got(m)
	case err == nil:
		return r.got(m)
	case isBatch(r.h.reading, text, err):
		r.text = nil
		return r.unpack(text)
	}
	return nil, unreadable(err)
}

func unreadable(err error) error { return &Failure{Cause: &UnreadableError{err}, Fate: MayHaveRun} }

// unpack takes a batch apart. Its text is kept.
func (r *Reply) unpack(text []byte) (*wire.Message, error) {
	for e := range wire.Elements(text) {
		r.batch = append(r.batch, e)
	}
	return r.next()
}

func (r *Reply) nextOfBatch() (*wire.Message, error) {
	text := r.batch[0]
	r.batch = r.batch[1:]
	m, err := wire.Parse(text, parsing)
	if err == nil {
		return r.got(m)
	}
	if r.skip(text, err) {
		return r.next()
	}
	return nil, unreadable(err)
}

// got returns a message that was read.
func (r *Reply) got(m wire.Message) (*wire.Message, error) {
	if m.Kind() == wire.Response && r.call != nil && !r.call.Is(m.ID) && !m.ID.IsZero() {
		return nil, r.foreign(m.ID)
	}
	r.msg = m
	return &r.msg, nil
}

// skip counts and logs a message that can't be read, as err says. It reports false of the
// response, which can't be skipped.
func (r *Reply) skip(text []byte, err error) bool {
	if id, method := wire.Salvage(text); method == "" && r.call != nil && r.call.Is(id) {
		return false
	}
	r.h.opts.Drop("unreadable")
	r.h.odd.Warn(r.h.opts.Logger, "skipping unreadable message of server", "error", err)
	return true
}

// Response returns the response that Next returned last. Whoever calls it does not call
// Next again.
func (r *Reply) Response() Response {
	return ResponseOf(&r.msg, r.release)
}

// release gives back the bytes of the response, which nobody uses any more.
func (r *Reply) release() {
	if r.stream.rd != nil || len(r.batch) > 0 {
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

// foreign ends the connection on which the response to another request came: that of this
// one may come next.
func (r *Reply) foreign(id wire.ID) error {
	if !http1.EndConnection(r.resp) {
		_ = r.resp.Body.Close() // it is read no further
		if t, ok := r.h.rt.(interface{ CloseIdleConnections() }); ok {
			t.CloseIdleConnections() // it may be among them
		}
	}
	r.h.opts.Drop("foreign answer")
	return &Failure{Cause: fmt.Errorf("it answered another request, of id %s, so that the connection was closed", mcp.Shorten(id.String())), Fate: MayHaveRun}
}

// expected guesses how long the response is, in bytes.
func (r *Reply) expected() int {
	if r.resp.ContentLength >= 0 {
		return int(min(r.resp.ContentLength, int64(r.h.opts.MaxMessage), maxExpected))
	}
	return int(min(r.h.size.Load(), maxExpected))
}

// broken tells a reply that broke off from one that nobody waits for any more.
func (r *Reply) broken(err error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	var large *transport.TooLongError
	var short *mcp.ShortageError
	switch {
	case errors.As(err, &short):
		return short // no fault of the server's
	case errors.As(err, &large):
		r.h.opts.BeyondLimit(large.Limit)
	}
	return &Failure{
		Cause: fmt.Errorf("reading its answer: %w", transport.Cause(err)),
		Fate:  MayHaveRun,
		Again: large == nil,
	}
}

// Rejection reads the body of an HTTP error, and closes the reply. m is the JSON-RPC error
// in it, nil if it holds none.
func (r *Reply) Rejection() (status *StatusError, m *wire.Message) {
	text, err := transport.ReadAll(r.resp.Body, r.expected(), maxRejection)
	r.Close() // whatever came is all there is
	if err == nil {
		r.msg, err = wire.Parse(text, parsing)
	}
	status = &StatusError{Code: r.resp.StatusCode, Slash: transport.WantsSlash(r.h.url, r.resp)}
	if err != nil || r.msg.Error == nil {
		return status, nil
	}
	status.Note = mcp.Shorten(r.msg.Error.Message)
	return status, &r.msg
}

// Discard reads the little that is left of a reply that nobody wants, so that the
// connection can be used again, and closes it. A stream may never end.
func (r *Reply) Discard() {
	if !r.IsStream() {
		_, _ = io.CopyN(io.Discard, r.resp.Body, 4<<10) // a longer rest costs the connection
	}
	_ = r.resp.Body.Close() // nothing can be done about it
}

// Close ends the reply, read or not. It may be called again.
func (r *Reply) Close() {
	_ = r.resp.Body.Close() // read as far as anybody wants
	if r.text != nil {
		transport.PutBuffer(r.text)
	}
	if r.stream.buf != nil {
		transport.PutBuffer(r.stream.buf)
	}
	r.text, r.stream.buf = nil, nil
}
