package sse

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// DefaultMaxEventSize is the largest event, in bytes, unless ReaderOptions sets another
// limit.
const DefaultMaxEventSize = 64 << 20

const (
	initialBuffer = 4 << 10
	keptBuffer    = 64 << 10 // a larger buffer is freed when it is idle
	maxEmptyReads = 100
)

// bom is the byte order mark, which may precede the first line.
var bom = []byte("\xef\xbb\xbf")

// An Event is one dispatched event of a stream.
type Event struct {
	Type string // "message" if the stream has no event field
	Data []byte // data lines joined by LF; valid until the next call to Next
	ID   string // the last event ID of the stream at this event; empty if none
}

// A TooLargeError reports that an event exceeded the reader's limit. The rest of the
// stream can't be read.
type TooLargeError struct {
	Limit int // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("sse: event larger than %d bytes", e.Limit)
}

// ReaderOptions configure a Reader. The zero value is ready to use.
type ReaderOptions struct {
	// MaxEventSize is the largest number of bytes that one event may have in the stream,
	// from its first field to the empty line, including comments between them. Zero and
	// negative values mean DefaultMaxEventSize.
	MaxEventSize int

	// Comment, if not nil, is called by Next for each comment line with the text after
	// the colon, which is valid only during the call.
	Comment func(text []byte)

	// Idle, if not nil, is called by Next before it reads more. n is the number of bytes
	// since the last call that belong to no event: comments, empty lines, skipped events.
	// The call may block, to slow the stream down.
	Idle interface{ Bytes(n int) }

	// Buffer is the first buffer; the reader uses its whole capacity and owns it. Nil
	// means a small buffer.
	Buffer []byte
}

// A Reader reads events from a stream. It is not safe for concurrent use.
type Reader struct {
	// Set by NewReader, read-only after.
	src  io.Reader
	opts ReaderOptions

	// The bytes that have been read and are still needed. Positions index buf.
	buf    []byte
	start  int // first byte of the current event
	line   int // first byte of the current line
	lf, cr int // buf[line:lf] has no LF, buf[line:cr] no CR; see seek
	begun  bool
	skipLF bool  // the last line ended in CR: an LF that follows belongs to it
	err    error // the error of src

	event pending // the current event
	idle  int     // bytes not yet reported to Idle
	last  span    // data of the event returned last
	id    string  // the "last event ID buffer" of the standard

	// The stream's settings so far.
	lastID   string
	retry    time.Duration
	retrySet bool
}

// A span is a range of Reader.buf.
type span struct{ from, to int }

// pending holds the fields of the current event.
type pending struct {
	typ   string
	data  span // the value of the first data line
	lines int  // number of data lines
}

// NewReader returns a Reader that reads events from src.
func NewReader(src io.Reader, opts ReaderOptions) *Reader {
	if opts.MaxEventSize <= 0 {
		opts.MaxEventSize = DefaultMaxEventSize
	}
	return &Reader{src: src, opts: opts, buf: opts.Buffer[:0]}
}

// Next returns the next event. Its Data is valid until the next call to Next;
// call [Reader.Take] to keep it.
//
// At the end of the stream Next returns io.EOF, after a failed read the error of that
// read, and for an event larger than MaxEventSize a [*TooLargeError]. Further calls
// return the same error.
func (r *Reader) Next() (Event, error) {
	r.release()
	for {
		if !r.begun {
			r.begun = r.skipBOM()
		}
		for r.begun {
			end, ok := r.lineEnd()
			if r.tooLarge(end) {
				return Event{}, r.err
			}
			if !ok {
				break
			}
			if ev, ok := r.consume(end); ok {
				return ev, nil
			}
		}
		if r.err != nil {
			return Event{}, r.err
		}
		r.fill()
	}
}

// Take returns the Data of the last event from Next, and makes the caller its owner. If
// the data fills a large part of the reader's buffer, Take does not copy it, but gives up
// the buffer. Before the first event, and when called twice, Take returns nil.
func (r *Reader) Take() []byte {
	from, to := r.last.from, r.last.to
	r.last = span{}
	if to == 0 {
		return nil
	}
	data := r.buf[from:to:to]
	if len(data) < cap(r.buf)/4 {
		return bytes.Clone(data)
	}
	r.move(nil)
	return data
}

// LastEventID returns the ID from which to resume: that of the last complete event, with
// or without data. It is empty if the stream has set none, or has reset it.
func (r *Reader) LastEventID() string { return r.lastID }

// Retry returns the last reconnection time that the stream has set, in whole
// milliseconds, and whether it has set one.
func (r *Reader) Retry() (time.Duration, bool) { return r.retry, r.retrySet }

// Rest returns the bytes of the stream after the last complete event, without leading
// comments. After an error of Next they are the incomplete event that the standard
// discards, or text that a server wrote without framing. They are valid until the next
// call to Next or Take.
func (r *Reader) Rest() []byte { return r.buf[r.start:] }

// skipBOM skips a byte order mark. It reports false if more bytes are needed to recognize
// one.
func (r *Reader) skipBOM() bool {
	have := r.buf[r.start:]
	if len(have) < len(bom) && bytes.HasPrefix(bom, have) && r.err == nil {
		return false
	}
	if bytes.HasPrefix(have, bom) {
		r.start += len(bom)
		r.line = r.start
	}
	return true
}

// lineEnd returns the end of the current line, exclusive of CR and LF. If there
// is none yet it returns the end of the buffer and false.
func (r *Reader) lineEnd() (int, bool) {
	if r.skipLF && r.line < len(r.buf) {
		r.skipLF = false
		if r.buf[r.line] == '\n' {
			if r.start == r.line {
				r.start++
			}
			r.line++
		}
	}
	r.lf = r.seek(r.lf, '\n')
	r.cr = r.seek(r.cr, '\r')
	end := min(r.lf, r.cr)
	return end, end < len(r.buf)
}

// seek returns the position of the first c at or after the start of the current line, or
// the end of the buffer. known is an earlier result; seek does not search the bytes
// before it again.
func (r *Reader) seek(known int, c byte) int {
	known = max(known, r.line)
	if known < len(r.buf) && r.buf[known] == c {
		return known
	}
	if i := bytes.IndexByte(r.buf[known:], c); i >= 0 {
		return known + i
	}
	return len(r.buf)
}

// tooLarge reports whether the event exceeds the limit with a line that reaches to end,
// and sets r.err if so. The result does not depend on how reads are split.
func (r *Reader) tooLarge(end int) bool {
	if end-r.start <= r.opts.MaxEventSize {
		return false
	}
	if _, again := r.err.(*TooLargeError); !again {
		r.err = &TooLargeError{Limit: r.opts.MaxEventSize}
	}
	return true
}

// consume processes the line that reaches to end. It returns an event if the line is the
// empty one that completes it.
func (r *Reader) consume(end int) (Event, bool) {
	begin := r.line
	r.line = end + 1
	r.skipLF = r.buf[end] == '\r'
	switch {
	case begin == end:
		return r.dispatch(end)
	case r.buf[begin] != ':':
		r.field(begin, end)
	default:
		if r.opts.Comment != nil {
			r.opts.Comment(r.buf[begin+1 : end])
		}
		if r.start == begin {
			r.start = r.line // no bytes before it are needed
			r.idle += r.line - begin
		}
	}
	return Event{}, false
}

// field processes one field of the current event. It ignores unknown fields.
func (r *Reader) field(begin, end int) {
	name, value := splitField(r.buf[begin:end])
	switch string(name) {
	case "data":
		if r.event.lines++; r.event.lines == 1 {
			r.event.data = span{end - len(value), end}
		}
	case "event":
		r.event.typ = typeName(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 && string(value) != r.id {
			r.id = string(value)
		}
	case "retry":
		if d, ok := parseRetry(value); ok {
			r.retry, r.retrySet = d, true
		}
	}
}

// dispatch completes the current event, whose last line ended before end, and begins the
// next one. An event whose data is empty only moves the last event ID: MCP servers send such
// events only to give a stream its first ID.
//
// Spec: 2025-11-25, basic/transports, Sending Messages to the Server.
func (r *Reader) dispatch(end int) (Event, bool) {
	e := r.event
	r.event = pending{}
	r.lastID = r.id
	if e.lines > 1 {
		e.data = r.join(e.data, end)
	}
	begin := r.start
	r.start = r.line
	if e.lines == 0 || e.data.from == e.data.to {
		r.idle += r.line - begin
		return Event{}, false
	}
	r.last = e.data
	if e.typ == "" {
		e.typ = "message"
	}
	return Event{Type: e.typ, Data: r.buf[e.data.from:e.data.to:e.data.to], ID: r.id}, true
}

// join moves the values of all data lines of the event that reaches to end after the
// first value, with LF between them. There is enough room, because each value loses at
// least its field name.
func (r *Reader) join(first span, end int) span {
	to := first.to
	rest := r.buf[first.to:end]
	for more := true; more; {
		var line []byte
		line, rest, more = nextLine(rest)
		if name, value := splitField(line); string(name) == "data" {
			r.buf[to] = '\n'
			to += 1 + copy(r.buf[to+1:], value)
		}
	}
	return span{first.from, to}
}

// release frees the data of the last event.
func (r *Reader) release() {
	returned := r.last
	r.last = span{}
	if r.start < len(r.buf) {
		return
	}
	keep := r.buf
	if returned.to > 0 && returned.to-returned.from < cap(keep)/16 && cap(keep) > keptBuffer {
		keep = nil // it grew for an unusually large event
	}
	r.move(keep[:0])
}

// fill reads once into the buffer, enlarges it before if needed, and sets r.err.
func (r *Reader) fill() {
	if r.idle > 0 && r.opts.Idle != nil {
		r.opts.Idle.Bytes(r.idle)
		r.idle = 0
	}
	if len(r.buf) == cap(r.buf) {
		r.makeRoom()
	}
	for range maxEmptyReads {
		n, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf = r.buf[:len(r.buf)+n]
		if r.err = err; n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// makeRoom moves the current event to the front of the buffer if at least half of the
// buffer precedes it, or else to a larger buffer.
func (r *Reader) makeRoom() {
	if r.start >= cap(r.buf)/2 && r.start > 0 {
		r.move(r.buf[:0])
		return
	}
	// No event needs more than the limit, an empty line, and one byte to detect that it
	// is too large.
	size := max(initialBuffer, min(2*cap(r.buf), r.start+r.opts.MaxEventSize+initialBuffer))
	r.move(make([]byte, 0, size))
}

// move makes buf, which is empty, the reader's buffer, and copies the current event into
// it.
func (r *Reader) move(buf []byte) {
	by := r.start
	r.buf = append(buf, r.buf[by:]...)
	r.start = 0
	r.line -= by
	r.lf = max(r.lf-by, 0)
	r.cr = max(r.cr-by, 0)
	r.event.data.from -= by
	r.event.data.to -= by
}

// splitField returns the name and the value of a line that is not a comment.
func splitField(line []byte) (name, value []byte) {
	name, value, found := bytes.Cut(line, []byte(":"))
	if !found {
		return line, line[len(line):]
	}
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return name, value
}

// typeName returns string(b), without an allocation for the types of MCP streams.
func typeName(b []byte) string {
	switch string(b) {
	case "message":
		return "message"
	case "endpoint":
		return "endpoint"
	}
	return string(b)
}

// parseRetry parses a number of milliseconds that consists of ASCII digits only. It
// returns the longest Duration for larger numbers.
func parseRetry(b []byte) (time.Duration, bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	if len(b) == 0 {
		return 0, false
	}
	const most = math.MaxInt64 / int64(time.Millisecond)
	ms, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || ms > most {
		ms = most // digits can only be out of range
	}
	return time.Duration(ms) * time.Millisecond, true
}
