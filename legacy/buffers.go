package legacy

import (
	"fmt"
	"io"
	"sync"
)

// Sizes of the buffers that are kept for response bodies. Larger ones are left
// to the collector.
var bufferSizes = [...]int{8 << 10, 128 << 10, 2 << 20}

var bufferPools [len(bufferSizes)]sync.Pool

// getBuffer returns an empty buffer for about n bytes.
func getBuffer(n int) []byte {
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

// putBuffer takes a buffer back. Nothing may use it after.
func putBuffer(b []byte) {
	for i, size := range bufferSizes {
		if cap(b) == size {
			b = b[:0]
			bufferPools[i].Put(&b)
			return
		}
	}
}

// A tooLargeError says that an answer exceeded the limit.
type tooLargeError struct {
	limit int
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("its answer is larger than %d bytes; raise limits.message if that is normal for it", e.limit)
}

// readAll reads src to its end into a buffer of getBuffer, size being what is
// expected. The buffer is the caller's, on failure too.
func readAll(src io.Reader, size, limit int) ([]byte, error) {
	// One byte more: the end is seen without growing.
	buf := getBuffer(min(size, limit) + 1)
	for {
		if len(buf) == cap(buf) {
			more := append(getBuffer(2*cap(buf)), buf...)
			putBuffer(buf)
			buf = more
		}
		n, err := src.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return buf, &tooLargeError{limit}
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, err
		}
	}
}
