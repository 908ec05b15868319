package upstream

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
)

const (
	// MaxWait is how much of a Pause a request waits for; it fails over more. It is also
	// how long a request waits for a server that keeps failing.
	MaxWait = time.Second
	// Stable is how long a session or a connection lives before its loss is no sign of a
	// server that keeps failing.
	Stable = 10 * time.Second
)

// pauses are those of a server that failed a second time.
var pauses = backoff.Backoff{Min: 200 * time.Millisecond, Max: 5 * time.Second}

// A Pause keeps a server that fails from being started again and again, and those who ask
// for it from waiting again and again. The zero value is that of a server which has not
// failed. Its owner guards it.
type Pause struct {
	noted  time.Time // when it last failed; zero if it has not
	until  time.Time
	length time.Duration // zero after the first failure, which may be the only one
	err    error
}

// Note notes that an attempt failed, or what it opened was lost, that began at a time.
// There is no pause after the first failure in a while; attempts that began before the
// server was known to fail tell nothing more.
func (p *Pause) Note(begun time.Time, err error) {
	p.err = err
	switch {
	case p.noted.IsZero(), begun.Sub(p.until) > Stable:
		p.length = 0
	case begun.Before(p.noted):
		return
	default:
		p.length = pauses.Next(p.length)
	}
	p.noted = time.Now()
	p.until = p.noted.Add(p.length)
}

// Left returns how long to wait before the server is tried again, nothing if that is not
// positive. The error is how it failed, if a request does not wait for so long.
func (p *Pause) Left() (time.Duration, error) {
	left := time.Until(p.until)
	if left > MaxWait {
		return 0, p.err
	}
	return left, nil
}

// Failing returns how the server last failed if it did more than once in a while, else nil.
func (p *Pause) Failing() error {
	if p.length == 0 {
		return nil
	}
	return p.err
}
