package front

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// heldNotes are what waits for a parked call's next response, as long as it is held.
type heldNotes struct {
	on    bool
	notes mcp.Backlog
	lost  int // for which there was no room
}

// take takes a message in, or reports that none is held.
func (h *heldNotes) take(n mcp.Notification) bool {
	if !h.on {
		return false
	}
	n.Params = slices.Clone(n.Params) // its text is the sender's
	if !h.notes.Add(n) {
		h.lost++
	}
	return true
}

// release returns what is held, and how many messages were lost. Once that is nothing,
// no more is held.
func (h *heldNotes) release() (notes []mcp.Notification, lost int) {
	notes, lost = h.notes.Take(), h.lost
	h.on, h.lost = len(notes) > 0, 0
	return notes, lost
}
