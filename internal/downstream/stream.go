package downstream

import (
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// maxStray is how many bytes a client may send on the connection of an open stream, where
// it should send nothing: enough for a request or two that were in flight.
const maxStray = 64 << 10

// A stream is a long HTTP response on a connection that was hijacked from net/http, whose
// buffers and goroutines are most of the cost of an idle stream. One goroutine writes at a
// time.
//
// It is the http.ResponseWriter of a Response whose header was written.
//
// Spec: RFC 9112, 7.1 (chunks) and 9.6 (the connection ends with the response).
type stream struct {
	conn net.Conn
	head []byte      // sent with the first chunk; nil after
	done atomic.Bool // the last chunk was written, or is about to be

	turns wake.Turns // write the rest
}

// takeOver hijacks the connection of a request. The response has status 200 and the
// headers of w. It returns an error, and changes nothing, if that is impossible: if the
// HTTP version has no chunks, or no connection for each response.
func takeOver(w http.ResponseWriter, r *http.Request) (*stream, error) {
	if r.ProtoMajor != 1 || r.ProtoMinor < 1 {
		return nil, http.ErrNotSupported
	}
	// Further bytes belong to a next request, which Connection: close declines.
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	h := w.Header()
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	h.Set("Transfer-Encoding", "chunked")
	h.Set("Connection", "close")
	s := &stream{conn: conn, head: append(transport.GetBuffer(0), "HTTP/1.1 200 OK\r\n"...)}
	_ = h.Write((*headWriter)(s))
	s.head = append(s.head, "\r\n"...)
	return s, nil
}

// A headWriter appends to the head of a stream.
type headWriter stream

func (w *headWriter) Write(p []byte) (int, error) {
	w.head = append(w.head, p...)
	return len(p), nil
}

// Header implements [http.ResponseWriter]. The header was written already.
func (s *stream) Header() http.Header { return nil }

// WriteHeader implements [http.ResponseWriter].
func (s *stream) WriteHeader(int) {}

// Flush implements [http.Flusher]. Every write is sent at once.
func (s *stream) Flush() {}

// SetWriteDeadline sets the deadline of further writes.
func (s *stream) SetWriteDeadline(t time.Time) error { return s.conn.SetWriteDeadline(t) }

// Write sends p at once, as one chunk. An error closes the connection, because the stream
// may have ended within p.
func (s *stream) Write(p []byte) (int, error) {
	if s.done.Load() {
		return 0, ErrEnded
	}
	if len(p) == 0 {
		return 0, nil // an empty chunk is the last
	}
	const frame = len("0123456789abcdef\r\n\r\n")
	buf := append(transport.GetBuffer(len(s.head)+len(p)+frame), s.head...)
	defer transport.PutBuffer(buf)
	transport.PutBuffer(s.head)
	s.head = nil
	buf = append(strconv.AppendUint(buf, uint64(len(p)), 16), "\r\n"...)
	buf = append(append(buf, p...), "\r\n"...)
	if _, err := s.conn.Write(buf); err != nil {
		s.close()
		return 0, err
	}
	return len(p), nil
}

// end sends the last chunk.
func (s *stream) end() error {
	if s.done.Swap(true) {
		return nil
	}
	_, err := s.conn.Write(append(s.head, "0\r\n\r\n"...))
	return err
}

// await returns when the client has left, or close was called, and says which. It ignores
// what the client sends: the response said that its next request needs another connection.
// A client that sends more than maxStray is disconnected; after the end of the stream,
// lingerTime bounds it instead.
func (s *stream) await() error {
	buf := make([]byte, 64)
	for stray := 0; stray <= maxStray || s.done.Load(); {
		n, err := s.conn.Read(buf)
		if err != nil {
			return ErrClientLeft
		}
		stray += n
	}
	s.close()
	return ErrStray
}

// lingerTime is how long a client may take to close a connection whose stream has ended.
// Closing a connection with unread data would discard the end of the stream.
const lingerTime = 500 * time.Millisecond

// linger makes await return soon if the stream has ended; otherwise it closes the
// connection.
func (s *stream) linger() {
	half, ok := s.conn.(interface{ CloseWrite() error })
	if !s.done.Load() || !ok || half.CloseWrite() != nil || s.conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		s.close()
	}
}

// close closes the connection. It may be called again.
func (s *stream) close() { _ = s.conn.Close() }
