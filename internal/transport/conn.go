package transport

import (
	"errors"
	"fmt"
	"time"
)

const (
	// DefaultMaxMessage bounds a message that is read, in bytes.
	DefaultMaxMessage = 64 << 20

	// DefaultWriteTimeout bounds how long one message may take to be written.
	DefaultWriteTimeout = 10 * time.Second
)

var (
	// ErrClosed is returned by the methods of a Conn after its Close.
	ErrClosed = errors.New("transport: conn closed")

	// ErrWriteTimeout is wrapped by the error of a Write that the peer did not
	// take in time.
	ErrWriteTimeout = errors.New("transport: write timed out")
)

// A Conn carries whole JSON-RPC messages, in order, both ways.
type Conn interface {
	// Read returns the next message without surrounding white space; the
	// caller owns it, and may give it to PutBuffer. It blocks until there is one, the
	// peer ends the connection, or Close (ErrClosed). io.EOF says that the peer has
	// nothing more to say and may still listen. One goroutine reads at a time.
	//
	// A [*TooLongError] concerns one message: the next Read goes on after it, or says
	// that the connection ends for it.
	Read() ([]byte, error)

	// Write sends one message, and does not keep msg. It is safe for
	// concurrent use, and returns an error that wraps ErrWriteTimeout rather
	// than wait for ever.
	Write(msg []byte) error

	// Close ends the connection, unblocks Read and Write, and waits for
	// whatever the Conn started. It may be called several times and from
	// several goroutines; all calls return the same.
	Close() error
}

// A TooLongError says that the peer sent a message beyond the limit, which nobody
// reads.
type TooLongError struct {
	Limit int    // bytes
	Start []byte // how it began, in case it names its request
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("transport: message longer than %d bytes", e.Limit)
}
