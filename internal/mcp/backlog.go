package mcp

import (
	"fmt"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Bounds of a [Backlog]: of how many messages progress replaces the previous one, and of
// how many bytes it takes no more log messages.
const (
	MaxBacklog      = 256
	MaxBacklogBytes = 4 << 20
)

// noteSize is what a message takes beside its params, in bytes.
const noteSize = 128

// A Backlog is a queue of the messages of one request for a receiver that is not ready.
// Log messages that do not fit are counted, and the receiver is told how many there were.
// The zero value is ready to use. It does not copy messages, and is not safe for
// concurrent use.
type Backlog struct {
	// Memory is the memory of the messages; the zero value is unbounded.
	Memory Reservation

	notes []Notification
	size  int  // bytes of the params in notes
	short bool // a message was refused because Memory could not grow

	gap     int           // log messages left out after those in notes
	severe  spec.LogLevel // the most severe of them
	leftOut int           // log messages left out before
}

// Add adds a message and reports whether it fits. If there are too many messages, a
// progress notification replaces the previous one, which is out of date, and log messages
// are left out until the receiver has read the others.
func (b *Backlog) Add(n Notification) bool {
	isLog := n.Method == spec.NotifyMessage
	ok := !isLog || b.Len() == 0 || b.gap == 0 && b.size+len(n.Params)+noteSize*len(b.notes) <= MaxBacklogBytes
	if ok && !b.Memory.TryGrow(len(n.Params)) {
		b.short, ok = true, false
	} else if ok && !b.add(n) {
		b.Memory.Shrink(len(n.Params))
		ok = false
	}
	if !ok && isLog {
		b.leaveOut(n)
	}
	return ok
}

func (b *Backlog) leaveOut(n Notification) {
	name, _ := wire.GetString(n.Params, "level")
	if level := spec.LogLevel(name); b.gap == 0 || level.Valid() && b.severe.Allows(level) {
		b.severe = level
	}
	b.gap++
}

// LeftOut returns how many log messages were left out in all.
func (b *Backlog) LeftOut() int { return b.leftOut + b.gap }

// closeGap returns the log message that stands for those left out.
func (b *Backlog) closeGap() Notification {
	text := fmt.Sprintf("%d log messages of the server are left out here: they came faster than they were read", b.gap)
	params := wire.AppendEdited(nil, nil, wire.Edit{Name: "level", Value: wire.Quote(string(b.severe))},
		wire.Edit{Name: "logger", Value: []byte(`"mcpbridge"`)}, wire.Edit{Name: "data", Value: wire.Quote(text)})
	b.leftOut, b.gap = b.LeftOut(), 0
	return Notification{Method: spec.NotifyMessage, Params: params}
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
	if len(b.notes) >= MaxBacklog && n.Method != spec.NotifyMessage {
		old := b.lastProgress()
		if n.Method != spec.NotifyProgress || old < 0 {
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
		if b.gap > 0 {
			return b.closeGap(), true
		}
		return n, false
	}
	n, b.notes[0] = b.notes[0], n
	b.notes = b.notes[1:]
	b.freed(n)
	return n, true
}

// Len returns the number of messages.
func (b *Backlog) Len() int { return len(b.notes) + min(b.gap, 1) }

// Take removes and returns all messages.
func (b *Backlog) Take() []Notification {
	notes := b.notes
	b.notes, b.size = nil, 0
	b.Memory.Release()
	if b.gap > 0 {
		notes = append(notes, b.closeGap())
	}
	return notes
}
