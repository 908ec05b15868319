package bridgetest

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// A Recorder records what passes on the wires of a program, with the time since the
// Recorder was made. In a synctest bubble the times are exact, so that two runs of the
// same script give the same [Recorder.Transcript]. Its methods are safe for concurrent
// use.
type Recorder struct {
	t     testing.TB
	begin time.Time

	mu       sync.Mutex // guards the fields below, and the entries of all channels
	channels []*channel
	wait     *randomWait // nil if none is under way
	shifts   []shift
}

// NewRecorder returns a Recorder whose time begins with this call.
func NewRecorder(t testing.TB) *Recorder { return &Recorder{t: t, begin: time.Now()} }

// A channel is one HTTP exchange, or one connection of messages. Its entries are in the
// order in which they passed; between channels only the times tell.
type channel struct {
	r           *Recorder
	wire, title string
	entries     []entry
}

// An entry is what one side sent at one time.
type entry struct {
	at   time.Duration
	mark string // ">" from the client of the wire, "<" from its server, "=" its end
	text string
}

// open begins a channel. wire is the name of the wire, by which channels are counted.
func (r *Recorder) open(wire, title string) *channel {
	c := &channel{r: r, wire: wire, title: title}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.channels = append(r.channels, c)
	return c
}

func (c *channel) add(mark, text string) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	at := time.Since(c.r.begin)
	c.r.endWait(at)
	c.entries = append(c.entries, entry{at, mark, strings.TrimRight(text, "\n")})
}

// A randomWait is a pause of the program whose length is random within bounds.
type randomWait struct{ since, least, most time.Duration }

// A shift moves what was recorded at a time, and later.
type shift struct{ from, by time.Duration }

// RandomWait says that the program begins to wait for a random time, at least least and
// at most most. The first entry at that time or later ends the wait, and is recorded as
// if it had lasted for most; so is the time of all that follows. The test fails if the
// wait is longer. Entries after it must not depend on a clock that began before it.
func (r *Recorder) RandomWait(least, most time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wait = &randomWait{time.Since(r.begin), least, most}
}

// endWait is called with the lock held.
func (r *Recorder) endWait(at time.Duration) {
	w := r.wait
	if w == nil || at < w.since+w.least {
		return
	}
	if took := at - w.since; took > w.most {
		r.t.Errorf("the program waited %v, want at most %v", took, w.most)
	}
	r.wait = nil
	r.shifts = append(r.shifts, shift{at, w.since + w.most - at})
}

// stamp is the time of an entry without the random parts of the waits before it. It is
// called with the lock held.
func (r *Recorder) stamp(at time.Duration) time.Duration {
	out := at
	for _, s := range r.shifts {
		if at >= s.from {
			out += s.by
		}
	}
	return out
}
