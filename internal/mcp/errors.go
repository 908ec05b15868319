package mcp

import (
	"context"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// ErrStarting says that an upstream has not been tried to its end yet.
var ErrStarting = errors.New("starting")

// ErrOtherEra says that a server refused to open a session, as one of the other era
// does: it is to be asked which era it is of.
var ErrOtherEra = errors.New("the server may be of another era")

// ErrShutdown is why calls, sessions and streams end that mcpbridge ends by itself, since it shuts
// down or has given up the upstream: what was asked of a server may have taken effect.
var ErrShutdown = errors.New("mcpbridge is shutting down")

// A Refusal is an error of the gateway itself about what was asked: the upstream
// has not been troubled. Over HTTP it has a status of its own, where an error
// that the upstream's handler returned is a success.
type Refusal struct {
	Err *wire.Error
	// Later says that the same may be taken if it is tried again in a moment.
	Later bool
}

func (e *Refusal) Error() string { return e.Err.Error() }

// Unwrap returns the wire error.
func (e *Refusal) Unwrap() error { return e.Err }

// Refuse returns a [*Refusal] with a formatted message.
func Refuse(code int64, format string, args ...any) error {
	return &Refusal{Err: wire.Errorf(code, format, args...)}
}

// RefuseForNow returns a [*Refusal] of what may be taken in a moment.
func RefuseForNow(format string, args ...any) error {
	return &Refusal{Err: wire.Errorf(spec.CodeInternal, format, args...), Later: true}
}

// MayTryLater reports whether what was refused with err may be taken in a moment.
func MayTryLater(err error) bool {
	var r *Refusal
	var short *ShortageError
	return errors.As(err, &r) && r.Later || errors.As(err, &short)
}

// WireError returns what a client is told of err: the wire error in its chain,
// or an internal error with err's text. Backs write their errors for people and
// keep secrets out of them.
func WireError(err error) *wire.Error {
	var we *wire.Error
	switch {
	case errors.As(err, &we):
		return we
	case errors.Is(err, context.Canceled):
		return wire.Errorf(spec.CodeInternal, "request cancelled")
	}
	return wire.Errorf(spec.CodeInternal, "%v", err)
}

// WithURI returns the data of an error that has the member uri, added if data lacks it.
func WithURI(data, uri []byte) []byte {
	if uri == nil || wire.Get(data, "uri") != nil {
		return data
	}
	edits := []wire.Edit{{Name: "uri", Value: uri}}
	if data != nil && !wire.IsObject(data) {
		edits = append(edits, wire.Edit{Name: "data", Value: data})
	}
	return wire.AppendEdited(nil, data, edits...)
}
