package downstream

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A clientError is an error with the text for clients. The error for the log is in its
// chain.
type clientError struct {
	err  error
	text string
	wire *wire.Error // nil if there is none in the chain
}

func (e *clientError) Error() string { return e.text }

// Unwrap returns the error as the log has it.
func (e *clientError) Unwrap() error { return e.err }

// As puts the wire error in the place of the one in the chain.
func (e *clientError) As(target any) bool {
	we, ok := target.(**wire.Error)
	if ok && e.wire != nil {
		*we = e.wire
		return true
	}
	return false
}

// An ErrorFilter removes from errors what clients must not see.
type ErrorFilter struct {
	Secrets *redact.Redactor // nil for none
	Debug   bool             // clients see addresses and paths of the gateway's side
}

// ForClient returns err with a text for clients: without secrets and, unless Debug is set,
// without addresses and paths of the gateway's side. If there is nothing to remove, it returns
// err itself.
func (f *ErrorFilter) ForClient(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	var we *wire.Error
	if !errors.As(err, &we) {
		if text := f.Secrets.String(f.text(err)); text != err.Error() {
			return &clientError{err, text, nil}
		}
		return err
	}
	inside := (*mcp.InsideError)(nil)
	if isInside := errors.As(err, &inside); isInside && f.Debug {
		we = inside.Full
	} else if clean := f.clean(we); clean == we && !isInside {
		return err
	}
	we = f.clean(we)
	return &clientError{err, we.Error(), we}
}

// text returns the text for clients of an error that is not a wire error.
func (f *ErrorFilter) text(err error) string {
	if f.Debug {
		return err.Error()
	}
	return transport.Public(err)
}

// clean returns e without secrets: e itself if it contains none.
func (f *ErrorFilter) clean(e *wire.Error) *wire.Error {
	message, data := f.Secrets.String(e.Message), f.Secrets.Bytes(e.Data)
	if message == e.Message && string(data) == string(e.Data) {
		return e
	}
	if data != nil && !json.Valid(data) {
		data = nil // the secret was JSON itself
	}
	return &wire.Error{Code: e.Code, Message: message, Data: data}
}

// CleanAnswer removes secrets from the text of a server's response. failed is the error in
// the response.
func (f *ErrorFilter) CleanAnswer(text []byte, failed *wire.Error) []byte {
	clean := f.clean(failed)
	if clean == failed {
		return text
	}
	id, _ := wire.ParseID(wire.Get(text, "id")) // valid: the response was parsed before
	return wire.AppendError(nil, id, clean)
}
