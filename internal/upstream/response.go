package upstream

import (
	"encoding/json"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

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
	e := KeepError(r.Err)
	r.Free()
	return e
}

// KeepError returns a copy of an error, which outlives the message it is of.
func KeepError(e *wire.Error) *wire.Error {
	return &wire.Error{Code: e.Code, Message: e.Message, Data: Keep(e.Data)}
}

// Keep returns a copy of a text, which outlives the response it is of. Nil stays nil.
func Keep(text []byte) []byte {
	if text == nil {
		return nil
	}
	return append([]byte(nil), text...)
}
