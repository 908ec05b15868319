package mcp

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An InsideError is an error of which clients are told less than the log: the rest is
// about the machines that mcpbridge and its servers run on. Its text is all of it.
type InsideError struct {
	Full *wire.Error // for those who run mcpbridge
	Told *wire.Error // for clients
}

func (e *InsideError) Error() string { return e.Full.Error() }

// Unwrap returns what clients are told; see [WireError].
func (e *InsideError) Unwrap() error { return e.Told }

// LinkEnded returns an error that wraps [ErrLinkEnded] and says why.
func LinkEnded(why interface {
	error
	Public() string
}) error {
	return &linkEnded{why.Error(), why.Public()}
}

type linkEnded struct{ full, told string }

func (e *linkEnded) Error() string { return ErrLinkEnded.Error() + ": " + e.full }

// Public returns what clients are told.
func (e *linkEnded) Public() string { return ErrLinkEnded.Error() + ": " + e.told }

// Unwrap returns ErrLinkEnded.
func (e *linkEnded) Unwrap() error { return ErrLinkEnded }

// Inside returns an error with a formatted message. Arguments that have a method Public
// say by it what clients are told of them; if that is all of them, the error is a
// [*wire.Error].
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
