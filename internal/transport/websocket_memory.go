package transport

import "io"

// A Room is what the message that is being read takes. It is used by one Read at a time.
type Room interface {
	// Grow reserves n more bytes. Its error is for the peer: what was used up, and when to
	// connect again.
	Grow(n int) error
	// Release gives back all.
	Release()
}

// A refusedMemory is the error of a Room.
type refusedMemory struct{ why error }

func (e *refusedMemory) Error() string { return e.why.Error() }

// receive reads one message as [ReadAll] does. Where memory is counted, the buffer doubles
// with the bytes that arrive: what a frame announces reserves none (CWE-789). The caller
// releases the memory.
func (w *WebSocket) receive(src io.Reader) ([]byte, error) {
	limit := w.opts.MaxMessage
	if w.opts.Memory == nil {
		return ReadAll(src, 0, limit)
	}
	if err := w.opts.Memory.Grow(smallBuffer); err != nil {
		return nil, &refusedMemory{err}
	}
	return readInto(GetBuffer(smallBuffer), src, limit, func(size int) ([]byte, error) {
		if err := w.opts.Memory.Grow(size / 2); err != nil {
			return nil, &refusedMemory{err}
		}
		return sized(size), nil
	})
}

// sized returns an empty buffer for exactly n bytes.
func sized(n int) []byte {
	if n == smallBuffer || n == mediumBuffer || n == largeBuffer {
		return GetBuffer(n)
	}
	return make([]byte, 0, n)
}
