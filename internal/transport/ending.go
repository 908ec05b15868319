package transport

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// exitGrace is how long to wait for how a child ended after its connection has ended.
const exitGrace = 500 * time.Millisecond

// An exitReporter is a connection that knows how it ended: that of a child process.
type exitReporter interface {
	Done() <-chan struct{} // closed when Err is set
	Err() error
}

// Ending returns an error for people about the end of conn, where err is the error of
// Read. It hides secrets in the last lines of a child.
func Ending(conn Conn, err error) error {
	if closed, ok := errors.AsType[*CloseError](err); ok {
		return closed
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("its connection broke: %w", err)
	}
	if m, ok := innermost(conn).(exitReporter); ok {
		t := time.NewTimer(exitGrace)
		defer t.Stop()
		select {
		case <-m.Done():
			if err := Exited(m.Err()); err != nil {
				return err
			}
		case <-t.C:
		}
	}
	return WithNoise(errors.New("it closed the connection, or exited"), conn)
}

// Noise returns, after a semicolon, the first output of a child that is not a message. If
// a child does not respond, that is the best hint at the cause. Noise is empty if there
// was no such output.
func Noise(conn Conn) string {
	c, ok := innermost(conn).(*Command)
	if !ok {
		return ""
	}
	line := c.noise.Load()
	if line == nil {
		return ""
	}
	return fmt.Sprintf("; it wrote %q to its standard output, where only messages belong", redact.Cut(c.opts.Secrets.Words(*line), 100))
}

// WithNoise adds [Noise] to an error.
func WithNoise(err error, conn Conn) error {
	if noise := Noise(conn); noise != "" {
		return &detailedError{err, noise}
	}
	return err
}

// A detailedError is an error with the output of a server's process, which is for logs
// only.
type detailedError struct {
	error
	detail string
}

func (e *detailedError) Error() string { return e.error.Error() + e.detail }

// Unwrap returns the error without the output.
func (e *detailedError) Unwrap() error { return e.error }

// Public returns the text for clients.
func (e *detailedError) Public() string { return Public(e.error) }

// Exited returns an error with how a child ended and lines of its standard error,
// which often have the cause. It returns nil if err has no exit status, or has status 0.
func Exited(err error) error {
	var exit *ExitError
	if !errors.As(err, &exit) {
		return nil
	}
	ended := fmt.Errorf("it ended: %s", exit.Status)
	if len(exit.Stderr) == 0 {
		return ended
	}
	words := redact.Looks(strings.Join(exit.Stderr, "\n"))
	if slices.Contains(exit.Stderr, gap) {
		return &detailedError{ended, fmt.Sprintf("; from its standard error: %q", redact.Cut(words, mostTelling))}
	}
	return &detailedError{ended, fmt.Sprintf("; its last lines on standard error: %q", lastPart(words))}
}

// mostTelling limits the lines that are quoted because they tell something, in bytes.
const mostTelling = 800

// lastPart returns the last part of a server's output for an error message.
func lastPart(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return "…" + strings.ToValidUTF8(text[len(text)-most:], "")
}
