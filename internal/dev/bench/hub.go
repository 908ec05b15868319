//go:build linux

package main

import (
	"net"
	"net/http"
	"sync"
)

// A bareHub is what one writes in an afternoon to tell many SSE clients the same:
// a handler per stream, with a channel that the publisher sends to. Who is slow
// misses something.
type bareHub struct {
	// mu guards streams.
	mu      sync.Mutex
	streams map[chan []byte]struct{}
}

func (h *bareHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	events := make(chan []byte, 16)
	h.mu.Lock()
	h.streams[events] = struct{}{}
	h.mu.Unlock()
	defer h.leave(events)
	w.Header().Set("Content-Type", "text/event-stream")
	f := w.(http.Flusher)
	_, _ = w.Write([]byte("data: welcome\n\n"))
	f.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case frame := <-events:
			if _, err := w.Write(frame); err != nil {
				return
			}
			f.Flush()
		}
	}
}

func (h *bareHub) leave(events chan []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, events)
}

func (h *bareHub) event([]string) (any, error) {
	frame := []byte("event: message\ndata: " + updated + "\n\n")
	h.mu.Lock()
	defer h.mu.Unlock()
	for events := range h.streams {
		select {
		case events <- frame:
		default:
		}
	}
	return len(h.streams), nil
}

func runHub(c *control, _ roleOptions) error {
	h := &bareHub{streams: make(map[chan []byte]struct{})}
	c.commands["event"] = h.event
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	return c.serve(l, h)
}
