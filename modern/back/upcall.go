package back

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// reading is how a server's texts are read: as strictly as those of clients, who
// would have to refuse what is passed on.
var reading = wire.Options{}

// A link carries requests to one server. Its methods are safe for concurrent use.
type link interface {
	// exchange sends the request c and returns the response. Without one it returns
	// a *failure, or the cause with which ctx ended; then the server has been told
	// if it may be at work.
	exchange(ctx context.Context, c *upcall) (answer, error)
	// listen sends the subscriptions/listen request c and returns once the server
	// has acknowledged it, or has answered it. A refusal is a *wire.Error. The
	// stream outlives ctx.
	listen(ctx context.Context, c *upcall) (listenStream, error)
	// close ends what the link holds open and joins what it started. ctx bounds
	// the politeness.
	close(ctx context.Context) error
}

// An upcall is one request as it is sent: a client's request may take several.
type upcall struct {
	id     int64
	method string
	frame  []byte
	header http.Header // beside those of every request; nil unless over HTTP
	scope  string      // the profile's
	of     *serving    // the client's request; nil for the gateway's own
	// probes says that the server may not know the request: it is not sent a cancellation
	// of it, which some servers don't survive.
	probes bool

	useless int // messages that nobody needed, yet to be rationed; its stream's reader's
}

// is reports whether id is the call's.
func (c *upcall) is(id wire.ID) bool {
	n, ok := id.Int()
	return ok && n == c.id
}

// from returns a reader of the call's answer that takes memory for it.
func (c *upcall) from(src io.Reader) io.Reader {
	if c.of == nil {
		return src
	}
	return c.of.in.From(src)
}

// takes takes memory for an answer of n bytes, or says why it can't be had.
func (c *upcall) takes(n int) error {
	if c.of == nil {
		return nil
	}
	return c.of.in.Take(n)
}

// listens reports whether it is a client's own listen request.
func (c *upcall) listens() bool { return c.of != nil && c.of.listens }

// An answer is a response as far as it is not about ids. Whoever gets one frees
// it.
type answer struct {
	result  json.RawMessage
	outline *wire.Outline // of result; may be nil
	err     *wire.Error
	extra   []byte
	status  int    // of the HTTP response, if it was an error; else zero
	release func() // gives the bytes back; may be nil
}

// answerOf returns the response in m; release, which may be nil, gives back the
// text that m aliases.
func answerOf(m *wire.Message, release func()) answer {
	return answer{result: m.Result, outline: m.Outline, err: m.Error, extra: m.Extra, release: release}
}

func (a *answer) free() {
	if a.release != nil {
		a.release()
		a.release = nil
	}
}

// keep returns a text of the answer that outlives it.
func keep(text []byte) []byte {
	if text == nil {
		return nil
	}
	return append([]byte(nil), text...)
}

// takeError frees the answer and returns its error, which outlives it.
func (a *answer) takeError() *wire.Error {
	e := &wire.Error{Code: a.err.Code, Message: a.err.Message, Data: keep(a.err.Data)}
	a.free()
	return e
}

// note returns what the caller is told of a notification that belongs to the
// call, and whether it is told anything. It does not alias m.
//
// Spec: 2026-07-28, basic/patterns/progress; server/utilities/logging.
func (c *upcall) note(m *wire.Message) (mcp.Notification, bool) {
	n := mcp.Notification{Method: m.Method, Params: m.Params}
	switch {
	case c.of == nil:
		return n, false
	case c.of.listens && m.Method == spec.NotifyProgress && c.of.req.ProgressToken != nil:
		n.Params = wire.AppendEdited(nil, m.Params, wire.Edit{Name: spec.MetaProgressToken, Value: c.of.req.ProgressToken})
		return n, true
	case c.of.listens, c.of.req.Era == spec.Modern && spec.UndefinedNotification(m.Method):
		n.Params = keep(m.Params)
		return n, true
	}
	switch m.Method {
	case spec.NotifyProgress:
		if c.of.req.ProgressToken == nil || !c.of.advance(wire.Get(m.Params, "progress")) {
			return n, false
		}
		n.Params = wire.AppendEdited(nil, m.Params, wire.Edit{Name: spec.MetaProgressToken, Value: c.of.req.ProgressToken})
		return n, true
	case spec.NotifyMessage:
		level, _ := wire.GetString(m.Params, "level")
		if !c.of.level.Allows(spec.LogLevel(level)) {
			return n, false
		}
		n.Params = keep(m.Params)
		return n, true
	}
	return n, false
}

// tokenOf returns the upstream id that a progress notification names.
func tokenOf(m *wire.Message) (int64, bool) {
	token, err := wire.ParseID(wire.Get(m.Params, spec.MetaProgressToken))
	if err != nil {
		return 0, false
	}
	return token.Int()
}
