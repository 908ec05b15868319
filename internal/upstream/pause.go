package upstream

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// MaxWait is the longest Pause for which a request waits; with a longer one it fails at
	// once. It is also how long a request waits, with others, for a server that
	// is started again and keeps failing.
	MaxWait = time.Second
	// Stable is how long a session or a connection must last so that its loss does not
	// count as another failure.
	Stable = 10 * time.Second
)

// pauses are the pauses after the second and later failures of a server.
var pauses = wake.Backoff{Min: 200 * time.Millisecond, Max: 5 * time.Second}

// A Pause limits how often a failing server is started again, and how long requests wait
// for it. The zero value is for a server that has not failed. Its owner must guard it.
type Pause struct {
	noted  time.Time // when it last failed; zero if it has not
	until  time.Time
	length time.Duration // zero after the first failure, which may be the only one
	err    error
}

// Note records that an attempt, which began at a time, has failed, or that what it opened
// was lost. There is no pause after the first failure in a while. Attempts that began
// before the last recorded failure change nothing.
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

// Left returns how long to wait before the next attempt; zero or less means not at all. If
// a request should not wait for so long, it returns the server's last error.
func (p *Pause) Left() (time.Duration, error) {
	left := time.Until(p.until)
	if left > MaxWait {
		return 0, p.err
	}
	return left, nil
}

// Failing returns the server's last error if it has failed more than once in a while, or
// nil.
func (p *Pause) Failing() error {
	if p.length == 0 {
		return nil
	}
	return p.err
}
