package link

import (
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// minRetry is the minimum pause before a stream is reopened, whatever the server asks
	// for. It allows 100 requests a second for each stream.
	minRetry = 10 * time.Millisecond
	// maxRetry is the maximum pause that a server can ask for.
	maxRetry = 5 * time.Minute
	// emptyStreams is how many streams in a row may end without a message before the pauses
	// between them grow.
	emptyStreams = 3
)

// emptyPauses are the minimum pauses from then on. They bound how late a response or a
// change can arrive. Jitter adds up to a quarter.
var emptyPauses = wake.Backoff{Min: time.Second, Max: 5 * time.Second}

// streamRetries are the pauses before the next attempt to open a stream.
var streamRetries = wake.Backoff{Min: 100 * time.Millisecond, Max: 30 * time.Second}

// A pacer decides when to reopen a stream that the server has closed. The server's retry
// time applies as long as its streams have messages. Otherwise a server that closes empty
// streams, with a retry time of zero, would cause an endless loop.
type pacer struct {
	empty int           // streams in a row without a message
	pause time.Duration // after the last of them
}

// after returns the pause after a stream that has ended, before jitter. asked is the
// server's retry time. useful says that the stream had a message, or was open for so long
// that reopening it at once can't cause a loop.
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

// putsOff reports whether a server that responded to a request with an HTTP error may take the
// same request later.
func putsOff(code int) bool {
	switch code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return code >= http.StatusInternalServerError
}

// putsOffStream is putsOff for a request to open a stream. With 409 a server says that the last
// one is open: it has not noticed its end.
func putsOffStream(code int) bool { return code == http.StatusConflict || putsOff(code) }
