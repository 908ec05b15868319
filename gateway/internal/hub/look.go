package hub

import (
	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

// Index returns the table of topics and subscribers.
func (h *Hub) Index() *Index { return h.index }

// Followers sets those of mailboxes, and returns how many there are in all.
func (h *Hub) Followers(mails []*fanout.Mailbox, of []Follower) (all int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, mail := range mails {
		if s := h.subscriptions[mail]; s != nil {
			of[i] = s.by
		}
	}
	return len(h.subscriptions)
}

// SomeStreams returns at most so many of the open listen streams, and how many there are.
func (h *Hub) SomeStreams(most int) (some []Stream, all int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.subscriptions {
		if len(some) == most {
			break
		}
		if s.stream && !s.peer {
			some = append(some, Stream{Server: s.server.Name(), By: s.by})
		}
	}
	return some, h.streams.Len()
}

// Watch has told called with each change, and its number of followers, until stop is called.
// It must be quick. One is called at a time.
func (h *Hub) Watch(told func(ev fanout.Event, followers int)) (stop func()) {
	h.watch.Store(&told)
	return func() { h.watch.CompareAndSwap(&told, nil) }
}
