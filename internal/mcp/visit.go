package mcp

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Visit is a page at which a person can log in to a server, while requests have to wait
// for that.
type Visit struct {
	URL     string
	Done    <-chan struct{} // closed when the login has ended in any way
	Decline func()          // ends the login, because the person does not want it
}

// A PageError tells a client of a page that its user has to open before the request is sent again.
// The log has the cause alone: the page's URL is for that user.
type PageError struct {
	Cause error
	Told  *wire.Error // as the client's era has it

	// ID is that of the elicitation in Told, and Await waits until it is complete, or ctx ends,
	// and reports whether it is. Await is nil if there is no elicitation.
	ID    string
	Await func(ctx context.Context) bool
}

func (e *PageError) Error() string { return e.Cause.Error() }

// Unwrap returns the error for the client.
func (e *PageError) Unwrap() error { return e.Told }

// A LoginError is the error of a request that the server has not run, because a person has to
// log in first. The same request may be served after that.
type LoginError struct{ Err error }

func (e *LoginError) Error() string { return e.Err.Error() }

// Unwrap returns the error for the log and for clients; see [WireError].
func (e *LoginError) Unwrap() error { return e.Err }
