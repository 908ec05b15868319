package front

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A backlog holds the notifications of a parked call for its next response.
type backlog struct {
	open  bool
	notes mcp.Backlog
	lost  int // for which there was no room
}

// add holds a message, or reports false if the backlog is closed.
func (b *backlog) add(n mcp.Notification) bool {
	if !b.open {
		return false
	}
	n.Params = slices.Clone(n.Params) // its text is the sender's
	if !b.notes.Add(n) {
		b.lost++
	}
	return true
}

// take returns the messages held, and how many were lost. Once there are none, the
// backlog is closed.
func (b *backlog) take() (notes []mcp.Notification, lost int) {
	notes, lost = b.notes.Take(), b.lost
	b.open, b.lost = len(notes) > 0, 0
	return notes, lost
}
