package mcp

import (
	"errors"
	"io"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// smallAnswer is the size up to which the memory of a response is part of the memory
	// of its request. Most responses are smaller.
	smallAnswer = 8 << 10
	// intakeStep is the unit in which memory is taken while a response is read.
	intakeStep = 64 << 10
)

// A ShortageError reports that there was no memory for the response of a server. The
// request may have taken effect.
type ShortageError struct{ err *wire.Error }

func (e *ShortageError) Error() string { return e.err.Error() }

// Unwrap returns the wire error.
func (e *ShortageError) Unwrap() error { return e.err }

// Of returns the error with the names of the server and of the request's method.
func (e *ShortageError) Of(server, method string, repeatable bool) error {
	next := ""
	if !repeatable {
		next = "; the request may have taken effect: check before sending it again"
	}
	return &ShortageError{wire.Errorf(e.err.Code, "the answer of server %q to %s was given up: %s%s", server, method, e.err.Message, next)}
}

// An Intake is the memory of one response of a server, or of one request of another replica, from reading
// it to its last use.
// It is safe for concurrent use, except for Read. The zero value is unbounded.
type Intake struct {
	src io.Reader // of Read; set by From

	mu      sync.Mutex // guards the fields below; the budget's locks are taken under it
	memory  Reservation
	read    int // bytes of the message that is being read
	covered int // bytes for which memory was taken
	closed  bool
}

// Use makes the response use the memory of a request. Call it before reading.
func (in *Intake) Use(m Memory, s Share) { in.memory = NewReservation(m, s) }

// Share makes the response use the same memory as another one.
func (in *Intake) Share(of *Intake) { in.memory = NewReservation(of.memory.memory, of.memory.share) }

// From returns a reader of src that takes memory for the bytes it reads. Its error is a
// [*ShortageError] if there is no memory.
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

// Next releases the memory of the last message before another one is read.
func (in *Intake) Next() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.read, in.covered = 0, 0
	in.memory.Release()
}

// Take takes memory for a response of n bytes that was read in another way. The error is
// a [*ShortageError].
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

// Close releases the memory. Later calls take none.
func (in *Intake) Close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.memory.Release()
}

func (in *Intake) coverLocked(n int) bool {
	if in.closed {
		return true // the response is not used
	}
	if !in.memory.TryGrow(n) {
		return false
	}
	in.covered += n
	return true
}

func (in *Intake) refuse() error {
	var we *wire.Error
	errors.As(in.memory.Refuse(), &we) // it wraps one
	return &ShortageError{we}
}
