package upstream

import (
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Reasons why a request got no response.
var (
	// ErrTooLong ends the context of a request that has reached its time limit.
	ErrTooLong = errors.New("request time-out")
	// ErrUnanswered says that a reply ended before the response.
	ErrUnanswered = errors.New("it ended its reply without a response")
	// ErrAccepted says that a request was accepted like a notification.
	ErrAccepted = errors.New("it accepted the request without answering it")

	// Shared, since most streams end so after their response.
	errEnd   error = &Failure{Cause: ErrUnanswered, Fate: MayHaveRun, Again: true}
	errOther error = &Failure{Cause: errors.New("it answered something else"), Fate: MayHaveRun}
)

// A Fate says whether a server may have run a request that got no response.
type Fate uint8

// The fates of a request.
const (
	MayHaveRun Fate = iota
	Refused         // the server refused it without running it
	NotSent
)

// A Failure says that a request got no response, and whether the server may have run it.
type Failure struct {
	Cause error
	Fate  Fate
	Lost  bool // the session is lost, too
	Again bool // another attempt may succeed, in the same session if there is one
	Spoke bool // the server can be reached: it has refused the request
}

func (f *Failure) Error() string { return f.Cause.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Repeatable reports whether a request of method may be sent again, without the risk that
// it takes effect twice.
func (f *Failure) Repeatable(method string) bool {
	return (f.Again || f.Lost) && (f.Fate != MayHaveRun || spec.Repeatable(method))
}

// MarkUnsent returns [mcp.ErrNotSent] in place of the error of a client's request of which nothing was
// sent because its back was closed, and any other error as it is. before says that the server has run
// a part of the request.
func MarkUnsent(err error, before bool) error {
	if f := AsFailure(err); !before && f != nil && f.Fate == NotSent && errors.Is(f, mcp.ErrShutdown) {
		return mcp.ErrNotSent
	}
	return err
}

// AsFailure returns the Failure in err's chain, or nil.
func AsFailure(err error) *Failure {
	f, _ := errors.AsType[*Failure](err)
	return f
}

// An UnreadableError says that a response is not JSON-RPC.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string { return "its response can't be read: " + e.Err.Error() }

// Unwrap returns what is wrong with the response.
func (e *UnreadableError) Unwrap() error { return e.Err }
