package mcp

import (
	"errors"
	"io"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// smallAnswer is how much of a server's answer is counted with its request. Most are
	// smaller, and take nothing of the memory.
	smallAnswer = 8 << 10
	// intakeStep is for how many bytes memory is taken at a time while an answer is read.
	intakeStep = 64 << 10
)

// A ShortageError says that there was no memory for the answer of a server, which may
// have done what it was asked for.
type ShortageError struct{ err *wire.Error }

func (e *ShortageError) Error() string { return e.err.Error() }

// Unwrap returns the wire error.
func (e *ShortageError) Unwrap() error { return e.err }

// Of returns the error with the server and the method that it answered.
func (e *ShortageError) Of(server, method string, repeatable bool) error {
	next := ""
	if !repeatable {
		next = "; the request may have taken effect: check before sending it again"
	}
	return &ShortageError{wire.Errorf(e.err.Code, "the answer of server %q to %s was given up: %s%s", server, method, e.err.Message, next)}
}

// An Intake is the memory of one answer of a server, from when it is read until nobody
// uses it any more. Safe for concurrent use, but for Read; the zero value has no bound.
type Intake struct {
	src io.Reader // of Read; set by From

	mu      sync.Mutex // guards the fields below; the budget's locks are taken under it
	room    Room
	read    int // bytes of the message that is being read
	covered int // of them, those that memory was taken for
	closed  bool
}

// Use has the answer take from the memory of a request, before it is read.
func (in *Intake) Use(m Memory, s Share) { in.room = NewRoom(m, s) }

// Share has the answer take from the same memory as another.
func (in *Intake) Share(of *Intake) { in.room = NewRoom(of.room.memory, of.room.share) }

// From returns a reader of src that takes memory for what it reads. Its error is a
// [*ShortageError] if there is none.
func (in *Intake) From(src io.Reader) io.Reader {
	in.src = src
	return in
}

// Read implements [io.Reader].
func (in *Intake) Read(p []byte) (int, error) {
	n, err := in.src.Read(p)
	in.mu.Lock()
	in.read += n
	short := in.read > smallAnswer && in.read > in.covered && !in.coverLocked(in.read-in.covered+intakeStep)
	in.mu.Unlock()
	if short {
		return n, in.refuse()
	}
	return n, err
}

// Next says that another message is read in the place of the last.
func (in *Intake) Next() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.read, in.covered = 0, 0
	in.room.Release()
}

// Take takes memory for an answer of n bytes that somebody else has read. The error is a
// [*ShortageError].
func (in *Intake) Take(n int) error {
	if n <= smallAnswer {
		return nil
	}
	in.mu.Lock()
	ok := in.coverLocked(n)
	in.mu.Unlock()
	if !ok {
		return in.refuse()
	}
	return nil
}

// Close gives the memory back, for good.
func (in *Intake) Close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.room.Release()
}

func (in *Intake) coverLocked(n int) bool {
	if in.closed {
		return true // nobody waits for it
	}
	if !in.room.TryGrow(n) {
		return false
	}
	in.covered += n
	return true
}

func (in *Intake) refuse() error {
	var we *wire.Error
	errors.As(in.room.Refuse(), &we) // it is one for a client
	return &ShortageError{we}
}
