package modern

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// maxHeld bounds the messages that wait for a parked call's next response.
const maxHeld = 256

// heldNotes are messages in the order in which they came, as long as they are held.
type heldNotes struct {
	on    bool
	notes []exchange.Notification
	lost  int // for which there was no room
}

// take holds a message, or reports that none is held. Without room the newest progress
// takes the place of the progress before it, which it outdates; other messages are lost.
func (h *heldNotes) take(n exchange.Notification) bool {
	if !h.on {
		return false
	}
	if len(h.notes) >= maxHeld {
		old := -1
		if n.Method == spec.NotifyProgress {
			old = h.last(n.Method)
		}
		if old < 0 {
			h.lost++
			return true
		}
		h.notes = slices.Delete(h.notes, old, old+1)
	}
	n.Params = slices.Clone(n.Params) // its text is the sender's
	h.notes = append(h.notes, n)
	return true
}

func (h *heldNotes) last(method string) int {
	for i, n := range slices.Backward(h.notes) {
		if n.Method == method {
			return i
		}
	}
	return -1
}

// release returns what is held, and how many messages were lost. Once that is nothing,
// no more is held.
func (h *heldNotes) release() (notes []exchange.Notification, lost int) {
	notes, lost = h.notes, h.lost
	*h = heldNotes{on: len(notes) > 0}
	return notes, lost
}
