package exchange

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// MaxBacklog bounds the messages in a [Backlog].
const MaxBacklog = 256

// A Backlog holds the messages of one request for somebody who can't take them yet, in
// order. The zero value is ready to use. It keeps what it is given, and is not safe for
// concurrent use.
type Backlog struct{ notes []Notification }

// Add adds a message and reports whether there was room. Where there is none the newest
// progress takes the place of the progress before it, which it outdates.
func (b *Backlog) Add(n Notification) bool {
	if len(b.notes) >= MaxBacklog {
		old := -1
		if n.Method == spec.NotifyProgress {
			old = b.lastProgress()
		}
		if old < 0 {
			return false
		}
		b.notes = slices.Delete(b.notes, old, old+1)
	}
	b.notes = append(b.notes, n)
	return true
}

func (b *Backlog) lastProgress() int {
	for i, n := range slices.Backward(b.notes) {
		if n.Method == spec.NotifyProgress {
			return i
		}
	}
	return -1
}

// Next takes the oldest message. It reports false if there is none.
func (b *Backlog) Next() (n Notification, ok bool) {
	if len(b.notes) == 0 {
		return n, false
	}
	n, b.notes[0] = b.notes[0], n
	b.notes = b.notes[1:]
	return n, true
}

// Len returns the number of messages.
func (b *Backlog) Len() int { return len(b.notes) }

// Take takes all messages.
func (b *Backlog) Take() []Notification {
	notes := b.notes
	b.notes = nil
	return notes
}
