package mcp

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// MaxBacklog bounds the messages in a [Backlog].
const MaxBacklog = 256

// A Backlog is a queue of the messages of one request for a receiver that is not ready.
// The zero value is ready to use. It does not copy messages, and is not safe for
// concurrent use.
type Backlog struct {
	// Memory is the memory of the messages; the zero value is unbounded.
	Memory Reservation

	notes []Notification
	size  int  // bytes of the params in notes
	short bool // a message was refused because Memory could not grow
}

// Add adds a message and reports whether it fits. If there are too many messages,
// a progress notification replaces the previous one, which is out of date.
func (b *Backlog) Add(n Notification) bool {
	if !b.Memory.TryGrow(len(n.Params)) {
		b.short = true
		return false
	}
	if !b.add(n) {
		b.Memory.Shrink(len(n.Params))
		return false
	}
	return true
}

// Offer is Add for a message whose place nothing can take. It reports false if there are as
// many messages already as messages says, or they would be of more bytes than size says.
func (b *Backlog) Offer(n Notification, messages, size int) bool {
	waits := len(b.notes)
	if waits >= messages || waits > 0 && b.size+len(n.Params) > size || !b.Memory.TryGrow(len(n.Params)) {
		return false
	}
	b.append(n)
	return true
}

// Short reports, once, that a message was refused because there was no memory. The caller
// then calls Refuse of Memory.
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
		b.freed(b.notes[old])
		b.notes = slices.Delete(b.notes, old, old+1)
	}
	b.append(n)
	return true
}

func (b *Backlog) append(n Notification) {
	b.notes = append(b.notes, n)
	b.size += len(n.Params)
}

// freed gives back the memory of a message.
func (b *Backlog) freed(n Notification) {
	b.size -= len(n.Params)
	b.Memory.Shrink(len(n.Params))
}

func (b *Backlog) lastProgress() int {
	for i, n := range slices.Backward(b.notes) {
		if n.Method == spec.NotifyProgress {
			return i
		}
	}
	return -1
}

// Next removes and returns the oldest message. It reports false if there is none.
func (b *Backlog) Next() (n Notification, ok bool) {
	if len(b.notes) == 0 {
		return n, false
	}
	n, b.notes[0] = b.notes[0], n
	b.notes = b.notes[1:]
	b.freed(n)
	return n, true
}

// Len returns the number of messages.
func (b *Backlog) Len() int { return len(b.notes) }

// Take removes and returns all messages.
func (b *Backlog) Take() []Notification {
	notes := b.notes
	b.notes, b.size = nil, 0
	b.Memory.Release()
	return notes
}
