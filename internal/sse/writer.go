package sse

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// ErrBadField is returned for an event type or ID that no stream can carry: one
// with a line break, or an ID with a NUL. Writing it would let whoever chose it
// forge events (CWE-93).
var ErrBadField = errors.New("sse: line break or NUL in event type or id")

// writeSize is how much the Writer gathers before it writes: data up to this
// size goes out in one Write with its framing, a longer line in a Write of its
// own, uncopied.
const writeSize = 16 << 10

// A Writer writes events to a stream. It does not flush, and is not safe for
// concurrent use. After an error from the underlying writer the stream may end
// in the middle of an event: close it.
type Writer struct {
	w   io.Writer
	buf []byte // reused; empty between calls
}

// NewWriter returns a Writer of events to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Event writes one event. An empty typ leaves the type to be "message", an
// empty id writes none. Every line of data, whichever way it ends, becomes a
// data line of its own, so a reader finds LF where data had CR or CRLF. It
// returns [ErrBadField], having written nothing, if typ or id can't be carried.
func (w *Writer) Event(typ, id string, data []byte) error {
	buf, err := appendFields(w.buf[:0], typ, id)
	if err != nil {
		return err
	}
	for more := true; more; {
		var line []byte
		line, data, more = nextLine(data)
		buf = append(buf, "data: "...)
		if len(buf)+len(line) > writeSize {
			if buf, err = w.writeAround(buf, line); err != nil {
				return err
			}
		} else {
			buf = append(buf, line...)
		}
		buf = append(buf, '\n')
	}
	return w.write(append(buf, '\n'))
}

// Comment writes text as comment lines, which readers pass over: a sign of
// life. An empty line follows, for readers that only look for those.
func (w *Writer) Comment(text string) error {
	buf := w.buf[:0]
	rest := []byte(text)
	for more := true; more; {
		var line []byte
		line, rest, more = nextLine(rest)
		buf = append(buf, ':')
		if len(line) > 0 {
			buf = append(append(buf, ' '), line...)
		}
		buf = append(buf, '\n')
	}
	return w.write(append(buf, '\n'))
}

// Retry asks the reader to wait d, cut to milliseconds, before it reconnects.
// A negative d is an error.
func (w *Writer) Retry(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("sse: negative retry %v", d)
	}
	buf := append(w.buf[:0], "retry: "...)
	buf = strconv.AppendInt(buf, d.Milliseconds(), 10)
	return w.write(append(buf, "\n\n"...))
}

// AppendEvent appends to dst the event that [Writer.Event] writes. If typ or id
// can't be carried it returns dst as it was and [ErrBadField].
func AppendEvent(dst []byte, typ, id string, data []byte) ([]byte, error) {
	dst, err := appendFields(dst, typ, id)
	if err != nil {
		return dst, err
	}
	for more := true; more; {
		var line []byte
		line, data, more = nextLine(data)
		dst = append(dst, "data: "...)
		dst = append(dst, line...)
		dst = append(dst, '\n')
	}
	return append(dst, '\n'), nil
}

// writeAround writes buf and then line, and returns buf emptied.
func (w *Writer) writeAround(buf, line []byte) ([]byte, error) {
	if err := w.write(buf); err != nil {
		return nil, err
	}
	if len(line) <= writeSize/2 {
		return append(w.buf[:0], line...), nil
	}
	_, err := w.w.Write(line)
	return w.buf[:0], err
}

// write writes buf and keeps its memory for the next call.
func (w *Writer) write(buf []byte) error {
	w.buf = buf[:0]
	_, err := w.w.Write(buf)
	return err
}

func appendFields(dst []byte, typ, id string) ([]byte, error) {
	if strings.ContainsAny(typ, "\r\n") || strings.ContainsAny(id, "\r\n\x00") {
		return dst, ErrBadField
	}
	if typ != "" {
		dst = append(append(append(dst, "event: "...), typ...), '\n')
	}
	if id != "" {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	return dst, nil
}
