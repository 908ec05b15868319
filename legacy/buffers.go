package legacy

import (
	"fmt"
	"io"

	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A tooLargeError says that an answer exceeded the limit.
type tooLargeError struct {
	limit int
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("its answer is larger than %d bytes; raise limits.upstream_message if that is normal for it", e.limit)
}

// readAll reads src to its end into a buffer of transport.GetBuffer, size being what is
// expected. The buffer is the caller's, on failure too.
func readAll(src io.Reader, size, limit int) ([]byte, error) {
	// One byte more: the end is seen without growing.
	buf := transport.GetBuffer(min(size, limit) + 1)
	for {
		if len(buf) == cap(buf) {
			more := append(transport.GetBuffer(2*cap(buf)), buf...)
			transport.PutBuffer(buf)
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
