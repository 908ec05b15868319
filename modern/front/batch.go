package front

import "github.com/mcpbridge/mcpbridge/internal/sse"

// maxBatch is how many bytes of events are gathered before they are written.
const maxBatch = 32 << 10

// A batch gathers events, so that they go out in few writes. Its owner lets one
// goroutine at a time use it.
type batch struct {
	events *[]byte // nil if there are none
}

// add adds a message, and reports whether there is room for more.
func (b *batch) add(msg []byte) bool {
	if b.events == nil {
		b.events = buffers.get()
		*b.events = (*b.events)[:0]
	}
	*b.events, _ = sse.AppendEvent(*b.events, "message", "", msg) // fails on bad types and ids only
	return len(*b.events) < maxBatch
}

// flush writes what was gathered, if there is any.
func (b *batch) flush(write func([]byte) error) error {
	if b.events == nil {
		return nil
	}
	events := b.events
	b.events = nil
	defer buffers.put(events)
	return write(*events)
}
