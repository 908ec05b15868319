package sse

import (
	"errors"
	"io"
	"strings"
)

// ErrBadField is returned for an event type or ID that a stream can't carry: one with a
// line break, or an ID with a NUL. Otherwise the party that chose it could forge events
// (CWE-93).
var ErrBadField = errors.New("sse: line break or NUL in event type or id")

// writeSize is the size of the Writer's buffer. Data up to this size is written together
// with its framing, a longer line without copying in a Write of its own.
const writeSize = 16 << 10

// A Writer writes events to a stream. It does not flush, and is not safe for concurrent
// use. After an error of the underlying writer the stream may end in the middle of an
// event: close it.
type Writer struct {
	w   io.Writer
	buf []byte // reused; empty between calls
}

// NewWriter returns a Writer that writes events to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Event writes one event. An empty typ means "message", an empty id means none. Every
// line of data becomes a data line, so a reader gets LF for each CR or CRLF in data. If
// typ or id can't be carried, Event writes nothing and returns [ErrBadField].
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

// AppendEvent appends to dst the event as [Writer.Event] writes it. If typ or id can't be
// carried, it returns dst unchanged and [ErrBadField].
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
