package transport

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// DefaultMaxMessage is the maximum size of a received message in bytes.
	DefaultMaxMessage = 64 << 20

	// DefaultWriteTimeout bounds how long one message to a client may take to be written.
	DefaultWriteTimeout = 10 * time.Second
)

var (
	// ErrClosed is returned by the methods of a Conn after its Close.
	ErrClosed = errors.New("transport: conn closed")

	// ErrWriteTimeout is wrapped by the error of a Write if the peer did not read the
	// message in time.
	ErrWriteTimeout = errors.New("transport: write timed out")

	// ErrUnwritten is wrapped by the error of a WriteUntil whose context ended before anything
	// was written. The connection is as it was.
	ErrUnwritten = errors.New("transport: nothing was written")
)

// A Conn is a connection that carries complete JSON-RPC messages, in order, in both
// directions.
type Conn interface {
	// Read returns the next message without surrounding white space; the caller owns it,
	// and may pass it to PutBuffer. It blocks until there is a message, the peer ends the
	// connection, or Close is called (ErrClosed). io.EOF means that the peer will send no
	// more messages, but may still read. Only one goroutine may read at a time.
	//
	// A [*TooLongError] is about one message: the next Read continues after it, or
	// returns that the connection has ended because of it.
	Read() ([]byte, error)

	// Write sends one message, and does not keep msg. It is safe for concurrent use. To a
	// client there is a time-out, after which it returns an error that wraps ErrWriteTimeout. A
	// server may be busy with one message and not read the next for as long as it takes: see
	// WriteUntil.
	Write(msg []byte) error

	// Close ends the connection, unblocks Read and Write, and waits for the goroutines
	// and processes of the Conn. It may be called several times and concurrently; all
	// calls return the same error.
	Close() error
}

// A TooLongError reports that the peer sent a message beyond the limit, which was
// discarded.
type TooLongError struct {
	Limit int    // bytes
	Start []byte // its beginning, which may have its id
	End   []byte // its end, which may have it, too; nil if it was not read
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("transport: message longer than %d bytes", e.Limit)
}

// WriteUntil writes a message to a server, which may read it at any later time. When ctx ends
// before anything of it was written, the message is withdrawn, and the error wraps
// [ErrUnwritten] and ctx's cause. Once a part was written, the rest has to follow, since no
// other message can: the connection writes it in the background, and WriteUntil returns nil
// when ctx ends. A Conn that is not made for this writes as its Write does.
func WriteUntil(ctx context.Context, conn Conn, msg []byte) error {
	if c, ok := conn.(interface {
		WriteUntil(ctx context.Context, msg []byte) error
	}); ok {
		return c.WriteUntil(ctx, msg)
	}
	return conn.Write(msg)
}
