package upstream

import (
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Reasons why a request got no response.
var (
	// ErrTooLong ends the context of a request whose time is up.
	ErrTooLong = errors.New("request time-out")
	// ErrUnanswered says that a reply ended before its response.
	ErrUnanswered = errors.New("it ended the response without an answer")
	// ErrAccepted says that a request was accepted as a notification is.
	ErrAccepted = errors.New("it accepted the request without answering it")

	// Shared, since most streams end so after their response.
	errEnd   error = &Failure{Cause: ErrUnanswered, Fate: MayHaveRun, Again: true}
	errOther error = &Failure{Cause: errors.New("it answered something else"), Fate: MayHaveRun}
)

// A Fate says what a server may have done with a request that got no response.
type Fate uint8

// The fates of a request.
const (
	MayHaveRun Fate = iota
	Refused         // the server turned it away before looking at it
	NotSent
)

// A Failure says that a request got no response, and what may have become of it.
type Failure struct {
	Cause error
	Fate  Fate
	Lost  bool // the session is lost with it
	Again bool // the next try may fare better, in the same session if there is one
	Spoke bool // the server is there: it said no
}

func (f *Failure) Error() string { return f.Cause.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Repeatable reports whether sending a request of method again may help, and can't do
// twice what the client asked for once.
func (f *Failure) Repeatable(method string) bool {
	return (f.Again || f.Lost) && (f.Fate != MayHaveRun || spec.Repeatable(method))
}

// AsFailure returns the Failure in err's chain, or nil.
func AsFailure(err error) *Failure {
	if err == nil {
		return nil // the usual case, in which f would be allocated for nothing
	}
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return nil
}

// An UnreadableError says that a response is not JSON-RPC.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string { return "its answer can't be read: " + e.Err.Error() }

// Unwrap returns what is wrong with the response.
func (e *UnreadableError) Unwrap() error { return e.Err }
