package link

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
)

const (
	// minRetry is the least pause before a stream is opened again, whatever the
	// server asks for: 100 requests a second for each stream at most.
	minRetry = 10 * time.Millisecond
	// maxRetry is the longest pause that a server can ask for.
	maxRetry = 5 * time.Minute
	// emptyStreams is how many streams in a row may bring nothing before the
	// pauses between them grow.
	emptyStreams = 3
)

// emptyPauses are the least pauses from then on. An answer or a change that comes at
// last is delayed by no more. Jitter adds up to a quarter.
var emptyPauses = backoff.Backoff{Min: time.Second, Max: 5 * time.Second}

// streamRetries are the pauses before a stream that could not be opened is tried
// again.
var streamRetries = backoff.Backoff{Min: 100 * time.Millisecond, Max: 30 * time.Second}

// A pacer paces how a stream is opened again that the server ends. What the
// server asks for holds as long as its streams bring something. Otherwise a server
// that asks to come back at once, with nothing to say, is asked without end.
type pacer struct {
	empty int           // streams in a row that brought nothing
	pause time.Duration // after the last of them
}

// after returns the pause after a stream that has ended, before jitter. asked is
// what the server asked for. useful says that the stream brought a message, or was
// open for so long that coming back at once can't become a loop.
func (c *pacer) after(asked time.Duration, useful bool) time.Duration {
	asked = min(max(asked, minRetry), maxRetry)
	if useful {
		*c = pacer{}
		return asked
	}
	if c.empty++; c.empty < emptyStreams {
		return asked
	}
	c.pause = emptyPauses.Next(c.pause)
	return max(asked, c.pause)
}
