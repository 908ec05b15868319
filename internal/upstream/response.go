package upstream

import (
	"encoding/json"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Response is a server's response to a call, without its id. The caller must call Free
// after the last use of its bytes.
type Response struct {
	Text    []byte // the whole message, as it was received
	Result  json.RawMessage
	Outline *wire.Outline // of Result; may be nil
	Err     *wire.Error
	Extra   []byte
	Status  int // of an HTTP error, or zero

	Release func() // frees the bytes; may be nil
}

// ResponseOf returns the response in m. release, which may be nil, frees the text that m
// aliases.
func ResponseOf(m *wire.Message, release func()) Response {
	return Response{Text: m.Text, Result: m.Result, Outline: m.Outline, Err: m.Error, Extra: m.Extra, Release: release}
}

// Free frees the bytes. It may be called more than once.
func (r *Response) Free() {
	if r.Release != nil {
		r.Release()
		r.Release = nil
	}
}

// TakeError frees the response and returns its error, which stays valid.
func (r *Response) TakeError() *wire.Error {
	e := KeepError(r.Err)
	r.Free()
	return e
}

// KeepError returns a copy of an error that stays valid when its message is freed.
func KeepError(e *wire.Error) *wire.Error {
	return &wire.Error{Code: e.Code, Message: e.Message, Data: Keep(e.Data)}
}

// Keep returns a copy of a text that stays valid when its response is freed. Nil stays nil.
func Keep(text []byte) []byte {
	if text == nil {
		return nil
	}
	return append([]byte(nil), text...)
}
