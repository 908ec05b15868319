package sse

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// DefaultMaxEventSize bounds an event, in bytes, unless ReaderOptions says
// otherwise.
const DefaultMaxEventSize = 64 << 20

const (
	initialBuffer = 4 << 10
	keptBuffer    = 64 << 10 // a larger buffer is let go once it stands idle
	maxEmptyReads = 100
)

// bom may precede the first line and is not part of it.
var bom = []byte("\xef\xbb\xbf")

// An Event is one dispatched event of a stream.
type Event struct {
	Type string // "message" where the stream names none
	Data []byte // data lines joined by LF; valid until the next call to Next
	ID   string // the stream's last event ID as of this event; empty if none
}

// A TooLargeError says that an event exceeded the reader's limit. The stream
// can't be read any further.
type TooLargeError struct {
	Limit int // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("sse: event larger than %d bytes", e.Limit)
}

// ReaderOptions configure a Reader. The zero value is ready to use.
type ReaderOptions struct {
	// MaxEventSize is the most bytes one event may take in the stream, from its
	// first field to the empty line, comments between them included. Zero and
	// negative values mean DefaultMaxEventSize.
	MaxEventSize int

	// KeepEmpty delivers events whose data is the empty string, as the grammar
	// has it. Without it Next passes over them after moving the last event ID:
	// MCP servers send them only to give a stream its first ID.
	//
	// Spec: 2025-11-25, basic/transports, Sending Messages to the Server.
	KeepEmpty bool

	// Comment, if not nil, is called from Next for each comment line with the
	// text after its colon, which is valid during the call only.
	Comment func(text []byte)

	// Idle, if not nil, is told from Next before it reads on how many bytes since the
	// last time belong to no event: comments, empty lines, events that are passed
	// over. It may take its time.
	Idle interface{ Bytes(n int) }

	// Buffer is the first buffer to read into, all of its capacity; the reader
	// owns it from then on. Nil means a small one.
	Buffer []byte
}

// A Reader reads events from a stream. It is not safe for concurrent use.
type Reader struct {
	// Set by NewReader, read-only after.
	src  io.Reader
	opts ReaderOptions

	// The bytes read and not yet done with. Positions index buf.
	buf    []byte
	start  int // first byte of the current event
	line   int // first byte of the current line
	lf, cr int // buf[line:lf] has no LF, buf[line:cr] no CR; see seek
	begun  bool
	skipLF bool  // the last line ended in CR: an LF next belongs to it
	err    error // what src ended with

	event pending // the current event
	idle  int     // bytes that Idle has not been told of
	last  span    // data of the event returned last
	id    string  // the "last event ID buffer" of the standard

	// What the stream has told so far.
	lastID   string
	retry    time.Duration
	retrySet bool
}

// span is a stretch of Reader.buf.
type span struct{ from, to int }

// pending is what the fields of the current event have said.
type pending struct {
	typ   string
	data  span // the value of the first data line
	lines int  // how many data lines there were
}

// NewReader returns a Reader of the events in src.
func NewReader(src io.Reader, opts ReaderOptions) *Reader {
	if opts.MaxEventSize <= 0 {
		opts.MaxEventSize = DefaultMaxEventSize
	}
	return &Reader{src: src, opts: opts, buf: opts.Buffer[:0]}
}

// Next returns the next event. Its Data is valid until the next call to Next;
// call [Reader.Take] to keep it.
//
// At the end of the stream Next returns io.EOF, after a failed read that read's
// error, and after an event beyond MaxEventSize a [*TooLargeError]; it goes on
// returning the same error.
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

// Take makes the Data of the event that Next returned last the caller's own and
// returns it. It costs no copy where the event fills most of the reader's
// buffer: the buffer goes with it. Before the first event, and when called
// again, it returns nil.
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

// LastEventID returns the ID to resume from: that of the last complete event,
// whether or not it had data. It is empty if the stream gave none or took it
// back.
func (r *Reader) LastEventID() string { return r.lastID }

// Retry returns the reconnection time the stream asked for last, in whole
// milliseconds, and whether it asked for one.
func (r *Reader) Retry() (time.Duration, bool) { return r.retry, r.retrySet }

// Rest returns the bytes after the last complete event as they stood in the
// stream, without leading comments. Once Next has returned an error these are
// the incomplete event that the standard discards, or what a server wrote
// without framing it. They are valid until the next call to Next or Take.
func (r *Reader) Rest() []byte { return r.buf[r.start:] }

// skipBOM reports whether enough was read to tell a byte order mark, and passes
// over it.
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

// seek returns the position of the first c at or after the current line, or the
// end of the buffer. known is an earlier answer: what it covers is not searched
// again, so that no byte is looked at twice for the same c.
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

// tooLarge reports whether the event exceeds the limit with a line that reaches
// to end, and if so ends the reader. The verdict does not depend on how reads
// were split.
func (r *Reader) tooLarge(end int) bool {
	if end-r.start <= r.opts.MaxEventSize {
		return false
	}
	if _, again := r.err.(*TooLargeError); !again {
		r.err = &TooLargeError{Limit: r.opts.MaxEventSize}
	}
	return true
}

// consume takes in the line that reaches to end. It returns an event if the line
// is the empty one that completes it.
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
			r.start = r.line // nothing before it to keep
			r.idle += r.line - begin
		}
	}
	return Event{}, false
}

// field takes in one field of the current event. Unknown fields are ignored.
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

// dispatch completes the current event, whose last line ended before end, and
// begins the next.
func (r *Reader) dispatch(end int) (Event, bool) {
	e := r.event
	r.event = pending{}
	r.lastID = r.id
	if e.lines > 1 {
		e.data = r.join(e.data, end)
	}
	begin := r.start
	r.start = r.line
	if e.lines == 0 || e.data.from == e.data.to && !r.opts.KeepEmpty {
		r.idle += r.line - begin
		return Event{}, false
	}
	r.last = e.data
	if e.typ == "" {
		e.typ = "message"
	}
	return Event{Type: e.typ, Data: r.buf[e.data.from:e.data.to:e.data.to], ID: r.id}, true
}

// join moves the values of all data lines of the event that reaches to end down
// to the first, with LF between them. The room is there: a value loses at least
// its field name.
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

// release takes back the data of the event returned last.
func (r *Reader) release() {
	returned := r.last
	r.last = span{}
	if r.start < len(r.buf) {
		return
	}
	keep := r.buf
	if returned.to > 0 && returned.to-returned.from < cap(keep)/16 && cap(keep) > keptBuffer {
		keep = nil // grown for an event that was an exception
	}
	r.move(keep[:0])
}

// fill reads once into the buffer, which it makes room in first. It leaves the
// outcome in r.err.
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

// makeRoom moves the current event to the front of the buffer, or to a larger
// one if it takes half of this one.
func (r *Reader) makeRoom() {
	if r.start >= cap(r.buf)/2 && r.start > 0 {
		r.move(r.buf[:0])
		return
	}
	// No event needs more than the limit, an empty line, and one byte to see
	// that it is beyond.
	size := max(initialBuffer, min(2*cap(r.buf), r.start+r.opts.MaxEventSize+initialBuffer))
	r.move(make([]byte, 0, size))
}

// move continues in buf, which is empty, with what the current event has so
// far.
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

// splitField returns the name and the value of a line that is no comment.
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

// typeName is string(b) without allocation for the types that MCP streams have.
func typeName(b []byte) string {
	switch string(b) {
	case "message":
		return "message"
	case "endpoint":
		return "endpoint"
	}
	return string(b)
}

// parseRetry reads a number of milliseconds made of ASCII digits only. Numbers
// beyond a Duration become the longest one.
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
		ms = most // out of range is the only error that digits can give
	}
	return time.Duration(ms) * time.Millisecond, true
}
