package downstream

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/sse"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

var (
	// ErrStreaming reports that a response is a stream already.
	ErrStreaming = errors.New("the response is a stream")
	// ErrEnded reports a write after the end of a response.
	ErrEnded = errors.New("the response is finished")
)

// comment is an empty comment of an event stream.
var comment = []byte(":\n\n")

// maxGathered is how many bytes of events are gathered before they are written. A larger
// event is not copied.
const maxGathered = 32 << 10

// A Response is the response to one HTTP request while it is written: a JSON body, or an
// event stream. It stays undecided between the two until an event is written, so that an
// error can have its own status for as long as possible. Every write has a deadline; after
// a failed write there are no more. Safe for concurrent use.
type Response struct {
	// Set by Init, read-only after.
	w       http.ResponseWriter
	rc      http.ResponseController
	timeout time.Duration // of a write
	turns   *wake.Turns   // nil but for a stream that Streams serve

	cut atomic.Bool // nothing more is written, and a write in progress fails

	// mu guards the fields below, and serializes writes: a slow client delays only its own
	// messages.
	mu     sync.Mutex
	state  state
	err    error         // of the write that failed
	events *[]byte       // gathered and not written; nil if there are none
	timer  *time.Timer   // writes comments; nil without KeepAlive
	every  time.Duration // between comments
}

type state uint8

const (
	undecided state = iota
	streaming
	ended
)

// NewResponse returns a Response that writes to w, with a timeout for each write. The
// caller calls Close before the handler returns.
func NewResponse(w http.ResponseWriter, timeout time.Duration) *Response {
	r := new(Response)
	r.Init(w, timeout)
	return r
}

// Init initializes a zero Response like NewResponse.
func (r *Response) Init(w http.ResponseWriter, timeout time.Duration) {
	r.w, r.rc, r.timeout = w, *http.NewResponseController(w), timeout
}

// JSON writes msg as the complete response. If the response is a stream already, it writes
// nothing, and returns ErrStreaming.
func (r *Response) JSON(status int, msg Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.state {
	case streaming:
		return ErrStreaming
	case ended:
		return ErrEnded
	}
	r.state = ended
	r.deadline()
	if err := writeJSON(r.w, status, msg); err != nil {
		return err
	}
	_ = r.rc.Flush() // otherwise it is sent when the handler returns; a test's recorder can't flush
	return nil
}

// Event writes one event, after those that were gathered.
func (r *Response) Event(typ, id string, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.gatherLocked(typ, id, data); err != nil {
		return err
	}
	return r.flushLocked()
}

// Gather gathers an event for Flush, so that several events are sent in one write.
func (r *Response) Gather(data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gatherLocked("message", "", data)
}

// Flush writes the gathered events, if there are any.
func (r *Response) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flushLocked()
}

// Copy writes events that another Response has written, as they come, to the end of src.
func (r *Response) Copy(src io.Reader) error {
	buf := make([]byte, 4<<10) // for as long as the stream, so it is small
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if err := r.writeEvents(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *Response) writeEvents(text []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writeLocked(text)
}

// Last writes an event and ends the stream.
func (r *Response) Last(data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.gatherLocked("message", "", data)
	if err == nil {
		err = r.flushLocked()
	}
	if err == nil {
		err = r.endLocked()
	}
	return err
}

// End ends the stream, unless it has ended or a write failed.
func (r *Response) End() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.endLocked()
}

// Comment writes a comment, which readers of the stream ignore.
func (r *Response) Comment() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writeLocked(comment)
}

// Turns have the rest of a stream written that [Streams.ServeTurns] serves.
func (r *Response) Turns() *wake.Turns { return r.turns }

// KeepAlive writes a comment every d, until StopKeepAlive or the end of the response.
func (r *Response) KeepAlive(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.every = d
	r.timer = time.AfterFunc(d, r.keepAlive)
}

// StopKeepAlive ends the comments of KeepAlive.
func (r *Response) StopKeepAlive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopKeepAliveLocked()
}

// Cause returns why ctx has ended, which ends when the client leaves. If a write failed,
// it returns that error, because the client may not have left.
func (r *Response) Cause(ctx context.Context) error {
	r.mu.Lock() // net/http ends the context before the write that failed returns
	defer r.mu.Unlock()
	return cmp.Or(r.err, context.Cause(ctx))
}

// Cut makes the write in progress, and later ones, fail. It does not wait.
func (r *Response) Cut() {
	r.cut.Store(true)
	_ = r.rc.SetWriteDeadline(time.Unix(1, 0)) // a writer without deadlines (a test's) can't stall
}

// Close is called when the handler returns: nothing is written after. It waits for a write
// in progress.
func (r *Response) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopKeepAliveLocked()
	if r.state == streaming && r.err == nil && !r.cut.Load() {
		r.deadline() // net/http writes the end of the stream, possibly long after the last event
	}
	r.state = ended
}

// keepAlive runs on the timer's goroutine. If timer is nil, it was stopped.
func (r *Response) keepAlive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer == nil || r.writeLocked(comment) != nil {
		return // the context ends with the connection
	}
	r.timer.Reset(r.every)
}

func (r *Response) stopKeepAliveLocked() {
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
}

// gatherLocked gathers an event, and writes the gathered ones if they are large enough.
func (r *Response) gatherLocked(typ, id string, data []byte) (err error) {
	if len(data) > maxGathered {
		return r.writeAroundLocked(typ, id, data)
	}
	if r.events == nil {
		r.events = NewBuffer()
	}
	if *r.events, err = sse.AppendEvent(*r.events, typ, id, data); err != nil {
		return err
	}
	if len(*r.events) < maxGathered {
		return nil
	}
	return r.flushLocked()
}

// writeAroundLocked writes the gathered events, and then another event without copying it.
func (r *Response) writeAroundLocked(typ, id string, data []byte) error {
	err := r.flushLocked()
	if err == nil {
		err = r.openLocked()
	}
	if err == nil {
		err = r.sentLocked(sse.NewWriter(r.w).Event(typ, id, data))
	}
	return err
}

func (r *Response) flushLocked() error {
	if r.events == nil {
		return nil
	}
	events := r.events
	r.events = nil
	defer FreeBuffer(events)
	return r.writeLocked(*events)
}

// writeLocked writes events, after opening the stream if necessary.
func (r *Response) writeLocked(events []byte) error {
	if err := r.openLocked(); err != nil {
		return err
	}
	_, err := r.w.Write(events)
	return r.sentLocked(err)
}

// sentLocked flushes what was written, unless err is not nil.
func (r *Response) sentLocked(err error) error {
	if err == nil {
		err = r.rc.Flush()
	}
	r.err = err
	return err
}

// openLocked makes an undecided response a stream, and sets the deadline of the next
// write.
func (r *Response) openLocked() error {
	switch {
	case r.err != nil:
		return r.err
	case r.state == ended:
		return ErrEnded
	case r.state == undecided:
		r.state = streaming
		setStreamHeaders(r.w.Header())
		r.w.WriteHeader(http.StatusOK)
	}
	r.deadline()
	if r.cut.Load() { // possibly just before the deadline was set
		return ErrEnded
	}
	return nil
}

func (r *Response) endLocked() error {
	if err := r.openLocked(); err != nil {
		return err
	}
	r.state = ended
	r.stopKeepAliveLocked()
	if s, ok := r.w.(*stream); ok {
		r.err = s.end()
	}
	return r.err
}

func (r *Response) deadline() {
	_ = r.rc.SetWriteDeadline(time.Now().Add(r.timeout)) // a writer without deadlines (a test's) can't stall
}

func setStreamHeaders(h http.Header) {
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
}
