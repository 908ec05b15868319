package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// ErrStarting reports that the first attempt to connect to an upstream server has not
// ended.
var ErrStarting = errors.New("starting")

// ErrOtherEra reports that a server refused to open a session, as a server of the other
// era does. The era must be detected again.
var ErrOtherEra = errors.New("the server may be of another era")

// ErrShutdown is why calls, sessions and streams end when mcpbridge shuts down or gives
// up an upstream server. Requests that were sent may have taken effect.
var ErrShutdown = errors.New("mcpbridge is shutting down")

// ErrNotSent is [ErrShutdown] of a request that was not sent: another back may serve it.
var ErrNotSent = fmt.Errorf("%w", ErrShutdown)

// An UnavailableError says that a server can't be used, and why. Clients see from its data that
// it is mcpbridge that answers.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Unavailable returns whether an error is that of an endpoint of mcpbridge whose server can't be
// used.
func Unavailable(e *wire.Error) bool {
	return string(wire.Get(e.Data, spec.DataUnavailable)) == "true"
}

// Absent returns an error of mcpbridge itself, which has no server where the client asks for one.
func Absent(code int64, format string, args ...any) *wire.Error {
	e := wire.Errorf(code, format, args...)
	e.Data = unavailable
	return e
}

// unavailable is the data of such an error.
var unavailable = wire.AppendEdited(nil, nil, wire.Edit{Name: spec.DataUnavailable, Value: []byte("true")})

// A Refusal is an error of the gateway about a request that it has not sent upstream.
// Over HTTP it has an error status, while an error from the upstream server has status
// 200.
type Refusal struct {
	Err *wire.Error
	// Later says that the same request may succeed if it is sent again in a moment, or
	// after RetryAfter.
	Later      bool
	RetryAfter time.Duration
	// Status is the HTTP status; zero means that of Err's code.
	Status int
	// Barred says that what controls the access to a server has refused the request: no other
	// server may be asked instead.
	Barred bool
	// Scopes are all scopes that the request needs, if it is refused because its
	// credential lacks one of them. Status is 403 then. The gateway sets Challenge, the
	// value of the WWW-Authenticate header.
	Scopes    []string
	Challenge string
}

func (e *Refusal) Error() string { return e.Err.Error() }

// Unwrap returns the wire error.
func (e *Refusal) Unwrap() error { return e.Err }

// Refuse returns a [*Refusal] with a formatted message.
func Refuse(code int64, format string, args ...any) error {
	return &Refusal{Err: wire.Errorf(code, format, args...)}
}

// RefuseForNow returns a [*Refusal] of a request that may succeed in a moment.
func RefuseForNow(format string, args ...any) error {
	return &Refusal{Err: wire.Errorf(spec.CodeInternal, format, args...), Later: true}
}

// MayTryLater reports whether a request refused with err may succeed in a moment.
func MayTryLater(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Later || errors.As(err, new(*ShortageError))
}

// A Hint is what the HTTP response has beside an error.
type Hint struct {
	Status     int    // zero means that of the error's code
	RetryAfter int    // seconds; zero means that the same request won't succeed
	Challenge  string // the WWW-Authenticate header; empty for none
}

// HintOf returns the hint of the error for which a request was refused.
func HintOf(err error) Hint {
	var h Hint
	if MayTryLater(err) {
		h.RetryAfter = 1
	}
	if r := (*Refusal)(nil); errors.As(err, &r) {
		h.Status, h.Challenge = r.Status, r.Challenge
		if len(r.Scopes) > 0 {
			h.Status = 403
		}
		h.RetryAfter = max(h.RetryAfter, int((r.RetryAfter+time.Second-1)/time.Second))
	}
	return h
}

// SetHeader sets the headers of the hint in h, those of an HTTP response.
func (h Hint) SetHeader(header map[string][]string) {
	if h.RetryAfter > 0 {
		header["Retry-After"] = []string{strconv.Itoa(h.RetryAfter)}
	}
	if h.Challenge != "" {
		header["Www-Authenticate"] = []string{h.Challenge}
	}
}

// HasCode reports whether a wire error with the code is in err's chain.
func HasCode(err error, code int64) bool {
	var we *wire.Error
	return errors.As(err, &we) && we.Code == code
}

// WireError returns the error for the client: the wire error in err's chain, or an
// internal error with err's text. Errors of backs are written for people and do not
// contain secrets.
func WireError(err error) *wire.Error {
	var we *wire.Error
	var away *UnavailableError
	switch {
	case errors.As(err, &away):
		told := *wire.Errorf(spec.CodeInternal, "%v", err)
		if errors.As(err, &we) {
			told = *we
		}
		told.Data = unavailable
		return &told
	case errors.As(err, &we):
		return we
	case errors.Is(err, context.Canceled):
		return wire.Errorf(spec.CodeInternal, "request cancelled")
	}
	return wire.Errorf(spec.CodeInternal, "%v", err)
}

// WithURI returns the data of an error with the member uri, which it adds if data lacks
// it.
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

// Shorten bounds what of a server's words goes into a message.
func Shorten(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
