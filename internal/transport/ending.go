package transport

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// exitGrace is how long a connection that has ended may take to say how.
const exitGrace = 500 * time.Millisecond

// An exitReporter is a connection that can say how it ended: that of a child process.
type exitReporter interface {
	Done() <-chan struct{} // closed when Err says how it ended
	Err() error
}

// Ending names the end of conn for people, err being what its Read returned.
// Secrets that a child wrote in its last lines are not in it.
func Ending(conn Conn, err error) error {
	var closed *CloseError
	if errors.As(err, &closed) {
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

// Noise says, after a semicolon, what a child has written to its standard output that
// is no message: the best hint there is if it does not answer. It is empty if there was
// nothing.
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

// A detailedError is an error with what a server's process wrote, which is for those who
// run it.
type detailedError struct {
	error
	detail string
}

func (e *detailedError) Error() string { return e.error.Error() + e.detail }

// Unwrap returns the error without what the process wrote.
func (e *detailedError) Unwrap() error { return e.error }

// Public returns what clients are told.
func (e *detailedError) Public() string { return Public(e.error) }

// Exited says how a child ended, and its last lines on standard error: they are the best hint there
// is. It returns nil if err does not say, or says that the child ended well.
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
	return &detailedError{ended, fmt.Sprintf("; its last lines on standard error: %q", lastPart(words))}
}

// lastPart bounds what of a server's output goes into a message, from its end.
func lastPart(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return "…" + strings.ToValidUTF8(text[len(text)-most:], "")
}
