package watch

import (
	"math/bits"
	"sync"
	"time"
)

const (
	// quiet is how long a reader has waited for a message if it has read all that has
	// arrived.
	quiet = 200 * time.Millisecond
	// waited is the least time that a message takes to be read which had not arrived
	// before; one that had arrived is read in some microseconds.
	waited = time.Millisecond
	// steady is how many of its last messages, of 16, a reader has waited for if it has
	// read all that has arrived, though more arrives all the time.
	steady = 12
)

// A pace tells whether the reader of a stream has read all that has arrived. A stream does
// not tell how much of it is unread, so this is concluded from how long the reader waits.
type pace struct {
	// mu guards the fields below.
	mu    sync.Mutex
	since time.Time // when it began to wait for a message; zero: it handles one
	waits uint16    // of its last messages, a bit each: it waited for it
}

// begin says that the reader waits for a message.
func (p *pace) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Now()
}

// end says that the reader has a message.
func (p *pace) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits <<= 1
	if time.Since(p.since) >= waited {
		p.waits |= 1
	}
	p.since = time.Time{}
}

// reset forgets the messages until now.
func (p *pace) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits = 0
}

// caughtUp reports whether the reader seems to have read all that has arrived. It may also
// have had no chance to run, so one look is not enough.
func (p *pace) caughtUp() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.since.IsZero() && time.Since(p.since) >= quiet || bits.OnesCount16(p.waits) >= steady
}
