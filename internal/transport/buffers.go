package transport

import "sync"

// Sizes of the pooled buffers for messages. Larger ones are left to the garbage
// collector.
var bufferSizes = [...]int{8 << 10, 128 << 10, 2 << 20}

var bufferPools [len(bufferSizes)]sync.Pool

// GetBuffer returns an empty buffer for about n bytes.
func GetBuffer(n int) []byte {
	for i, size := range bufferSizes {
		if n <= size {
			if b, ok := bufferPools[i].Get().(*[]byte); ok {
				return (*b)[:0]
			}
			return make([]byte, 0, size)
		}
	}
	return make([]byte, 0, n)
}

// PutBuffer returns a buffer from GetBuffer, or a message from [Conn.Read], to the pool.
// It must not be used afterwards. PutBuffer ignores other slices, and parts of a buffer
// that do not reach to its end.
func PutBuffer(b []byte) {
	for i, size := range bufferSizes {
		if cap(b) == size {
			kept := b[:0] // on the heap, where b would be of others too
			bufferPools[i].Put(&kept)
			return
		}
	}
}
