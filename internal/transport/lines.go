package transport

import (
	"bytes"
	"io"
)

const (
	copiedLine = 4 << 10   // lines up to this size are copied
	idleBuffer = 128 << 10 // the largest buffer of an idle reader
	longEdge   = 256       // how much of the beginning and the end of a too long message is kept
)

// A lineReader splits a stream into lines, which end with LF or at the end of the stream.
type lineReader struct {
	src   io.Reader
	limit int // bytes of a line

	buf     []byte
	start   int   // first byte of the current line
	scanned int   // buf[start:scanned] has no LF
	err     error // the error of src
}

// next returns the next line without its LF; the caller owns it. partial says that the
// stream ended before the LF. For a line longer than the limit, next returns a
// [*TooLongError]; the next call continues after the line.
func (l *lineReader) next() (line []byte, partial bool, err error) {
	for {
		if i := bytes.IndexByte(l.buf[l.scanned:], '\n'); i >= 0 {
			line, err := l.cut(l.scanned+i, 1)
			return line, false, err
		}
		l.scanned = len(l.buf)
		switch {
		case len(l.buf)-l.start > l.limit:
			return nil, false, l.skip()
		case l.err != nil && l.start < len(l.buf):
			line, err := l.cut(len(l.buf), 0)
			return line, true, err
		case l.err != nil:
			return nil, false, l.err
		}
		l.fill()
	}
}

// cut returns the line that reaches to end, and begins the next line, ending bytes
// further. It copies a short line. For a long one it gives up the buffer, and copies the
// bytes after the line to another.
func (l *lineReader) cut(end, ending int) ([]byte, error) {
	line := l.buf[l.start:end]
	l.start = end + ending
	l.scanned = l.start
	switch {
	case len(line) > l.limit:
		long := l.tooLong(line)
		if ending > 0 {
			long.End = withEnd(nil, line)
		}
		return nil, long
	case len(line) > copiedLine:
		l.move(max(len(l.buf)-l.start, min(len(line), idleBuffer)))
		return line, nil
	}
	line = bytes.Clone(line)
	if l.start == len(l.buf) {
		l.reset()
	}
	return line, nil
}

// reset empties the buffer, and frees it if it has grown for an unusually long line.
func (l *lineReader) reset() {
	if cap(l.buf) > idleBuffer {
		PutBuffer(l.buf)
		l.buf = nil
	}
	l.buf, l.start, l.scanned = l.buf[:0], 0, 0
}

// move copies the rest to another buffer of at least size bytes, and leaves the old one
// unchanged.
func (l *lineReader) move(size int) {
	to := GetBuffer(size)
	l.scanned -= l.start
	l.buf, l.start = append(to, l.buf[l.start:]...), 0
}

// skip skips the rest of a line that is too long without storing it.
func (l *lineReader) skip() error {
	tooLong := l.tooLong(l.buf[l.start:])
	end := withEnd(nil, l.buf[l.start:])
	PutBuffer(l.buf)
	l.buf, l.start, l.scanned = GetBuffer(0), 0, 0
	for l.err == nil {
		l.fill()
		if i := bytes.IndexByte(l.buf, '\n'); i >= 0 {
			l.start, l.scanned = i+1, i+1
			tooLong.End = withEnd(end, l.buf[:i])
			break
		}
		end = withEnd(end, l.buf)
		l.buf = l.buf[:0]
	}
	return tooLong
}

func (l *lineReader) tooLong(line []byte) *TooLongError {
	return &TooLongError{Limit: l.limit, Start: bytes.Clone(line[:min(len(line), longEdge)])}
}

// withEnd returns the end of a message that ends with what is in end and then more. It may change
// end, and does not keep more.
func withEnd(end, more []byte) []byte {
	end = append(end, more[max(0, len(more)-longEdge):]...)
	return append(end[:0], end[max(0, len(end)-longEdge):]...)
}

// fill reads once, after making room: at the front if the current line leaves
// at least half of the buffer, else in one twice as large.
func (l *lineReader) fill() {
	if len(l.buf) == cap(l.buf) {
		old := l.buf
		if l.start > 0 && l.start >= cap(old)/2 {
			l.buf = append(old[:0], old[l.start:]...)
			l.scanned -= l.start
			l.start = 0
		} else {
			l.move(min(2*cap(old), len(old)-l.start+l.limit))
			PutBuffer(old)
		}
	}
	n, err := l.src.Read(l.buf[len(l.buf):cap(l.buf)])
	l.buf, l.err = l.buf[:len(l.buf)+n], err
}

// oneLine returns msg for a line of its own: without surrounding white space, which some
// servers treat as an error, and without line breaks. JSON strings can't contain raw line
// breaks, so they are white space. It does not change msg, and returns a part of it if
// possible.
func oneLine(msg []byte) []byte {
	msg = bytes.TrimSpace(msg)
	if bytes.IndexByte(msg, '\n') < 0 && bytes.IndexByte(msg, '\r') < 0 {
		return msg
	}
	msg = bytes.Clone(msg)
	for i, c := range msg {
		if c == '\n' || c == '\r' {
			msg[i] = ' '
		}
	}
	return msg
}

// looksLikeMessage reports whether a line without surrounding white space can
// be JSON-RPC: an object, or a batch of them.
func looksLikeMessage(line []byte) bool {
	return len(line) > 0 && (line[0] == '{' || line[0] == '[')
}
