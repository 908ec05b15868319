package front

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/sse"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// An httpReply is the reply to a request that came over HTTP. It stays undecided
// between a JSON body and a stream until something has to go before the result, so
// that errors keep a status of their own as long as they can.
type httpReply struct {
	reply // of which it is the replyWriter
	r     *http.Request
	forms forms

	// mu guards what follows, and serializes writes to w: a slow client makes
	// its own notifications wait, and nobody else's.
	mu    sync.Mutex
	w     http.ResponseWriter
	rc    *http.ResponseController
	state responseState
	timer *time.Timer // sends keep-alives; nil before keepAlive
	batch batch
}

type responseState uint8

const (
	undecided responseState = iota
	streaming
	finished // nothing can be written any more
)

func newHTTPReply(f *Front, w http.ResponseWriter, r *http.Request, id wire.ID) *httpReply {
	p := &httpReply{reply: reply{front: f, id: id}, r: r, forms: accepted(r.Header), w: w, rc: http.NewResponseController(w)}
	p.writer = p
	return p
}

func (p *httpReply) streams() bool { return p.forms.stream }
func (p *httpReply) peer() string  { return p.r.RemoteAddr }

// keepAlive comments on the response as long as it is open and silent, until
// stop, which the caller calls.
func (p *httpReply) keepAlive() (stop func()) {
	if !p.forms.stream {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(p.front.opts.KeepAlive, p.keptAlive)
	return p.stopKeepAlive
}

// stopKeepAlive ends the keep-alives. It may be called again.
func (p *httpReply) stopKeepAlive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// keptAlive runs on the timer's goroutine; that the timer was stopped meanwhile is
// told by its absence.
func (p *httpReply) keptAlive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil || p.commentLocked() != nil {
		return // the request's context ends with its connection
	}
	p.timer.Reset(p.front.opts.KeepAlive)
}

func (p *httpReply) comment() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.commentLocked()
}

// listen sends the headers and a comment, before any upstream work: some clients
// wait for the headers without a bound, and some proxies hold a response back until
// its first byte. The stream goes on without the handler where it can.
func (p *httpReply) listen(ctx context.Context, _ *fanout.Mailbox, serve serveStream) error {
	if p.takeOver(serve) {
		return nil
	}
	if err := p.comment(); err != nil {
		return nil // the client has gone
	}
	return serve(ctx, &p.reply)
}

func (p *httpReply) opened(*fanout.Mailbox) (shared bool) { return false }

func (p *httpReply) put(msg []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.batch.add(msg) {
		return nil
	}
	return p.batch.flush(p.writeLocked)
}

func (p *httpReply) flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.batch.flush(p.writeLocked)
}

func (p *httpReply) commentLocked() error { return p.writeLocked([]byte(":\n\n")) }

// writeLocked writes events, opening the stream first if need be.
func (p *httpReply) writeLocked(events []byte) error {
	if err := p.openLocked(); err != nil {
		return err
	}
	if _, err := p.w.Write(events); err != nil {
		return err
	}
	return p.rc.Flush()
}

// respond writes the response in the form that is still open.
func (p *httpReply) respond(status int, msg message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == undecided && p.forms.json {
		p.state = finished
		p.deadlineLocked()
		if err := writeJSON(p.w, status, msg); err != nil {
			return err
		}
		_ = p.rc.Flush() // else it waits for the handler's end; a recorder can't
		return nil
	}
	err := p.openLocked()
	if err == nil {
		err = sse.NewWriter(p.w).Event("message", "", msg.whole())
	}
	if err == nil {
		err = p.rc.Flush()
	}
	if err == nil {
		p.state = finished
	}
	return err
}

func (p *httpReply) notAcceptable() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = finished
	WriteError(p.w, http.StatusNotAcceptable, p.id, wire.Errorf(spec.CodeInvalidRequest,
		"the Accept header takes no form that this answer has; send Accept: %s, %s", protocol.TypeJSON, protocol.TypeStream))
}

// finish says that the handler returns: the writer is net/http's again.
func (p *httpReply) finish() {
	p.stopKeepAlive()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = finished
}

// openLocked turns an undecided response into a stream, and sets the deadline of
// the write to come.
func (p *httpReply) openLocked() error {
	switch p.state {
	case finished:
		return errFinished
	case undecided:
		p.state = streaming
		setStreamHeaders(p.w.Header())
		p.w.WriteHeader(http.StatusOK)
	}
	p.deadlineLocked()
	return nil
}

func setStreamHeaders(h http.Header) {
	h.Set("Content-Type", protocol.TypeStream)
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
}

func (p *httpReply) deadlineLocked() {
	// A writer without deadlines (a test's recorder) can't stall either.
	_ = p.rc.SetWriteDeadline(time.Now().Add(p.front.opts.WriteTimeout))
}

// WriteError writes a JSON-RPC error as a whole HTTP response.
func WriteError(w http.ResponseWriter, status int, id wire.ID, e *wire.Error) {
	// The client is gone if this fails, and its context says so.
	_ = writeJSON(w, status, message{text: wire.AppendError(nil, id, e)})
}

// retryAfter is the value of a header: in how many seconds what there was no room for may
// be tried again. Nobody changes it.
var retryAfter = []string{"1"}

// jsonType is the value of a header of all JSON answers. Nobody changes it.
var jsonType = []string{protocol.TypeJSON}

func writeJSON(w http.ResponseWriter, status int, msg message) error {
	h := w.Header()
	if msg.later {
		h["Retry-After"] = retryAfter
	}
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(msg.text) + len(msg.large))}
	w.WriteHeader(status)
	if len(msg.large) == 0 {
		_, err := w.Write(msg.text)
		return err
	}
	for _, part := range [][]byte{msg.text[:msg.at], msg.large, msg.text[msg.at:]} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
