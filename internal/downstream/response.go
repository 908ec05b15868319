package downstream

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/sse"
)

var (
	// ErrStreaming is returned where a response is a stream already.
	ErrStreaming = errors.New("the response is a stream")
	// ErrEnded is returned by writes after the end of a response.
	ErrEnded = errors.New("the response is finished")
)

// comment is what readers of an event stream pass over: a sign of life.
var comment = []byte(":\n\n")

// maxGathered is how many bytes of events are gathered before they are written. An
// event that is larger is not copied.
const maxGathered = 32 << 10

// A Response is the answer to one HTTP request while it is written: a JSON body, or a
// stream of events. It stays undecided between the two until an event is written, so
// that an error keeps a status of its own as long as it can. Every write has a deadline;
// after one that failed none is tried. Safe for concurrent use.
type Response struct {
	// Set by Init, read-only after.
	w       http.ResponseWriter
	rc      http.ResponseController
	timeout time.Duration // of a write

	cut atomic.Bool // nothing is written any more, and a write under way fails

	// mu guards the fields below, and serializes writes: a slow client makes its own
	// messages wait, and nobody else's.
	mu     sync.Mutex
	state  state
	err    error         // of the write that failed
	events *[]byte       // gathered and not written; nil if there are none
	timer  *time.Timer   // writes comments; nil if nothing does
	every  time.Duration // between comments
}

type state uint8

const (
	undecided state = iota
	streaming
	ended
)

// NewResponse returns a Response that writes to w, of which each write may take timeout.
// Its owner calls Close before the handler returns.
func NewResponse(w http.ResponseWriter, timeout time.Duration) *Response {
	r := new(Response)
	r.Init(w, timeout)
	return r
}

// Init makes the zero Response one of NewResponse.
func (r *Response) Init(w http.ResponseWriter, timeout time.Duration) {
	r.w, r.rc, r.timeout = w, *http.NewResponseController(w), timeout
}

// JSON writes msg as the whole response. If the response is a stream already it writes
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
	_ = r.rc.Flush() // else it waits for the handler's end; a test's recorder can't
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

// Gather gathers an event for Flush, so that several go out in one write.
func (r *Response) Gather(data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gatherLocked("message", "", data)
}

// Flush writes the events that were gathered, if there are any.
func (r *Response) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flushLocked()
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

// Comment writes a comment, which readers of the stream pass over.
func (r *Response) Comment() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writeLocked(comment)
}

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

// Cause says why ctx has ended, which ends with the client: a client that can't be
// written to has not left.
func (r *Response) Cause(ctx context.Context) error {
	r.mu.Lock() // net/http ends the context before the write that failed returns
	defer r.mu.Unlock()
	return cmp.Or(r.err, context.Cause(ctx))
}

// Cut fails the write under way, and those to come. It does not wait.
func (r *Response) Cut() {
	r.cut.Store(true)
	_ = r.rc.SetWriteDeadline(time.Unix(1, 0)) // what has no deadlines can't stall
}

// Close says that the handler returns: nothing is written after. It waits for a write
// under way.
func (r *Response) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopKeepAliveLocked()
	if r.state == streaming && r.err == nil && !r.cut.Load() {
		r.deadline() // net/http writes the end of the stream, maybe long after the last event
	}
	r.state = ended
}

// keepAlive runs on the timer's goroutine. Its absence says that it was stopped.
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

// gatherLocked gathers an event, and writes what was gathered once that is enough.
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

// writeAroundLocked writes what was gathered, and then an event, which it does not copy.
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

// writeLocked writes events, and opens the stream first if need be.
func (r *Response) writeLocked(events []byte) error {
	if err := r.openLocked(); err != nil {
		return err
	}
	_, err := r.w.Write(events)
	return r.sentLocked(err)
}

// sentLocked flushes what was written, unless err says that it was not.
func (r *Response) sentLocked(err error) error {
	if err == nil {
		err = r.rc.Flush()
	}
	r.err = err
	return err
}

// openLocked turns an undecided response into a stream, and sets the deadline of the
// write to come.
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
	if r.cut.Load() { // maybe just before the deadline was set
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
	_ = r.rc.SetWriteDeadline(time.Now().Add(r.timeout)) // what has no deadlines can't stall
}

func setStreamHeaders(h http.Header) {
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
}
