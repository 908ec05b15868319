package mcp

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An InsideError is an error with a shorter text for clients than for the log. The rest
// reveals details of the machines on which mcpbridge and its servers run. Error returns
// the full text.
type InsideError struct {
	Full *wire.Error // for the log
	Told *wire.Error // for clients
}

func (e *InsideError) Error() string { return e.Full.Error() }

// Unwrap returns the error for clients; see [WireError].
func (e *InsideError) Unwrap() error { return e.Told }

// SessionEnded returns an error that wraps [ErrSessionEnded] and has the reason.
func SessionEnded(why interface {
	error
	Public() string
}) error {
	return &sessionEnded{why.Error(), why.Public()}
}

type sessionEnded struct{ full, told string }

func (e *sessionEnded) Error() string { return ErrSessionEnded.Error() + ": " + e.full }

// Public returns the text for clients.
func (e *sessionEnded) Public() string { return ErrSessionEnded.Error() + ": " + e.told }

// Unwrap returns ErrSessionEnded.
func (e *sessionEnded) Unwrap() error { return ErrSessionEnded }

// Inside returns an error with a formatted message. If an argument has a method Public,
// the text for clients has its result instead of the argument. If both texts are equal,
// the error is a [*wire.Error], and else an [*InsideError].
func Inside(code int64, format string, args ...any) error {
	public := slices.Clone(args)
	for i, a := range args {
		if p, ok := a.(interface{ Public() string }); ok {
			public[i] = p.Public()
		}
	}
	full, told := wire.Errorf(code, format, args...), wire.Errorf(code, format, public...)
	if full.Message == told.Message {
		return full
	}
	told.Message += "; more is in the log of mcpbridge"
	return &InsideError{full, told}
}
