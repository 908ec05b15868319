package transport

import "sync"

// Sizes of the pooled buffers for messages. Larger ones are left to the garbage
// collector.
const (
	smallBuffer  = 8 << 10
	mediumBuffer = 128 << 10
	largeBuffer  = 2 << 20
)

// The pools hold pointers to arrays, which an interface holds without an allocation.
var (
	smallBuffers  = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
	mediumBuffers = sync.Pool{New: func() any { return new([mediumBuffer]byte) }}
	largeBuffers  = sync.Pool{New: func() any { return new([largeBuffer]byte) }}
)

// GetBuffer returns an empty buffer for about n bytes.
func GetBuffer(n int) []byte {
	switch {
	case n <= smallBuffer:
		return smallBuffers.Get().(*[smallBuffer]byte)[:0]
	case n <= mediumBuffer:
		return mediumBuffers.Get().(*[mediumBuffer]byte)[:0]
	case n <= largeBuffer:
		return largeBuffers.Get().(*[largeBuffer]byte)[:0]
	}
	return make([]byte, 0, n)
}

// PutBuffer returns a buffer from GetBuffer, or a message from [Conn.Read], to the pool.
// It must not be used afterwards. PutBuffer ignores other slices, and parts of a buffer
// that do not reach to its end.
func PutBuffer(b []byte) {
	switch b = b[:cap(b)]; len(b) {
	case smallBuffer:
		smallBuffers.Put((*[smallBuffer]byte)(b))
	case mediumBuffer:
		mediumBuffers.Put((*[mediumBuffer]byte)(b))
	case largeBuffer:
		largeBuffers.Put((*[largeBuffer]byte)(b))
	}
}
