package transport

import "sync"

// Sizes of the buffers that are kept for messages. Larger ones are left to the
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

// PutBuffer takes a buffer of GetBuffer, or a message that [Conn.Read] returned,
// back; nothing may use it after. Of others it takes no notice, nor of a part of a
// buffer that does not reach to its end.
func PutBuffer(b []byte) {
	for i, size := range bufferSizes {
		if cap(b) == size {
			kept := b[:0] // on the heap, where b would be of others too
			bufferPools[i].Put(&kept)
			return
		}
	}
}
