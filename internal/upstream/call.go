package upstream

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// parsing is how a server's messages are parsed: as strictly as those of clients, who
// would have to refuse what is passed on.
var parsing = wire.Options{}

// A Call is one request as it is sent to a server. What a client asks may take several.
type Call struct {
	// Set before the call is sent, read-only after.
	ID     int64
	Method string
	Owner  any         // what the back knows of it; not used here
	In     *mcp.Intake // takes memory for its response; nil for no bound
	// Cancel ends the context under which it is sent. It is called when its reply has
	// been read to the end.
	Cancel context.CancelCauseFunc
	// Patience is how long the end of a stream may take to come after the response. Zero
	// means 100 ms, but no time at all for a server that keeps streams open.
	Patience time.Duration
}

// Is reports whether id, as the server wrote it, is the call's.
func (c *Call) Is(id wire.ID) bool {
	n, ok := id.Int()
	return ok && n == c.ID
}

// from returns a reader of the response that takes memory for it.
func (c *Call) from(src io.Reader) io.Reader {
	if c == nil || c.In == nil {
		return src
	}
	return c.In.From(src)
}

// A Response is a server's response to a call, but for its id. Whoever gets one calls
// Free after the last use of its bytes.
type Response struct {
	Text    []byte // all of it, as it came
	Result  json.RawMessage
	Outline *wire.Outline // of Result; may be nil
	Err     *wire.Error
	Extra   []byte
	Status  int // of an HTTP error; else zero

	Release func() // gives the bytes back; may be nil
}

// ResponseOf returns the response in m. release, which may be nil, gives back the text
// that m aliases.
func ResponseOf(m *wire.Message, release func()) Response {
	return Response{Text: m.Text, Result: m.Result, Outline: m.Outline, Err: m.Error, Extra: m.Extra, Release: release}
}

// Free gives the bytes back. It may be called again.
func (r *Response) Free() {
	if r.Release != nil {
		r.Release()
		r.Release = nil
	}
}

// TakeError frees the response and returns its error, which outlives it.
func (r *Response) TakeError() *wire.Error {
	e := &wire.Error{Code: r.Err.Code, Message: r.Err.Message, Data: Keep(r.Err.Data)}
	r.Free()
	return e
}

// Keep returns a copy of a text, which outlives the response it is of. Nil stays nil.
func Keep(text []byte) []byte {
	if text == nil {
		return nil
	}
	return append([]byte(nil), text...)
}
