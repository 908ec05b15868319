package front

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A backlog contains the notifications of a parked call for its next reply.
type backlog struct {
	open  bool
	notes mcp.Backlog
	lost  int // those that did not fit
}

// add adds a notification. It reports false if the backlog is closed.
func (b *backlog) add(n mcp.Notification) bool {
	if !b.open {
		return false
	}
	n.Params = slices.Clone(n.Params) // the sender reuses its memory
	if !b.notes.Add(n) {
		b.lost++
	}
	return true
}

// take removes and returns all notifications, and the number of those that did not fit. If
// there are none, it closes the backlog.
func (b *backlog) take() (notes []mcp.Notification, lost int) {
	notes, lost = b.notes.Take(), b.lost
	b.open, b.lost = len(notes) > 0, 0
	return notes, lost
}
