package mcp

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// MaxBacklog bounds the messages in a [Backlog].
const MaxBacklog = 256

// A Backlog holds the messages of one request for somebody who can't take them yet, in
// order. The zero value is ready to use. It keeps what it is given, and is not safe for
// concurrent use.
type Backlog struct {
	// Room is where the messages are; the zero value has no bound.
	Room Room

	notes []Notification
	short bool // a message was refused because Room could not grow
}

// Add adds a message and reports whether there was room. Where there are too many the
// newest progress takes the place of the progress before it, which it outdates.
func (b *Backlog) Add(n Notification) bool {
	if !b.Room.TryGrow(len(n.Params)) {
		b.short = true
		return false
	}
	if !b.add(n) {
		b.Room.Shrink(len(n.Params))
		return false
	}
	return true
}

// Short reports, once, that a message was refused for want of memory. Whoever asks tells
// of it, by Refuse of the room.
func (b *Backlog) Short() bool {
	short := b.short
	b.short = false
	return short
}

func (b *Backlog) add(n Notification) bool {
	if len(b.notes) >= MaxBacklog {
		old := -1
		if n.Method == spec.NotifyProgress {
			old = b.lastProgress()
		}
		if old < 0 {
			return false
		}
		b.Room.Shrink(len(b.notes[old].Params))
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
	b.Room.Shrink(len(n.Params))
	return n, true
}

// Len returns the number of messages.
func (b *Backlog) Len() int { return len(b.notes) }

// Take takes all messages.
func (b *Backlog) Take() []Notification {
	notes := b.notes
	b.notes = nil
	b.Room.Release()
	return notes
}
