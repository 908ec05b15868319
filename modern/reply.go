package modern

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/sse"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A reply is the answer to one request while it is being written. It stays
// undecided between a JSON body and a stream until something has to go before
// the result, so that errors keep a status of their own as long as they can.
//
// It is the exchange.Exchange of its request.
type reply struct {
	f     *Front
	r     *http.Request
	id    wire.ID
	forms forms

	// mu guards what follows, and serializes writes to w: a slow client makes
	// its own notifications wait, and nobody else's.
	mu    sync.Mutex
	w     http.ResponseWriter
	rc    *http.ResponseController
	state replyState
	timer *time.Timer // sends keep-alives; nil before keepAlive
}

type replyState uint8

const (
	undecided replyState = iota
	streaming
	finished // nothing can be written any more
)

var errFinished = errors.New("the response is finished")

func newReply(f *Front, w http.ResponseWriter, r *http.Request, id wire.ID) *reply {
	return &reply{f: f, r: r, id: id, forms: accepted(r.Header), w: w, rc: http.NewResponseController(w)}
}

// Notify puts a progress or log message on the stream, opening it if need be. A
// client that takes no stream goes without.
func (p *reply) Notify(_ context.Context, n exchange.Notification) error {
	if !p.forms.stream {
		p.f.opts.Metrics.Dropped("client takes no stream")
		return nil
	}
	buf := buffers.get()
	defer buffers.put(buf)
	*buf = wire.AppendNotification((*buf)[:0], n.Method, n.Params, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.eventLocked(*buf)
}

// Ask is refused: who can be asked has a flight for an Exchange.
func (p *reply) Ask(context.Context, []exchange.Question) ([]exchange.Answer, error) {
	return nil, exchange.ErrCannotAsk
}

// keepAlive comments on the response as long as it is open and silent, until
// stop, which the caller calls.
func (p *reply) keepAlive() (stop func()) {
	if !p.forms.stream {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(p.f.opts.KeepAlive, p.comment)
	return p.silence
}

// silence ends the keep-alives. It may be called again.
func (p *reply) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// comment runs on the timer's goroutine; that the timer was stopped meanwhile is
// told by its absence.
func (p *reply) comment() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil || p.openLocked() != nil {
		return
	}
	if sse.NewWriter(p.w).Comment("") != nil || p.rc.Flush() != nil {
		return // the request's context ends with its connection
	}
	p.timer.Reset(p.f.opts.KeepAlive)
}

// result writes the result of req and finishes the reply.
func (p *reply) result(req *exchange.Request, res *exchange.Result) error {
	buf := buffers.get()
	defer buffers.put(buf)
	msg, err := p.f.stamp((*buf)[:0], p.id, req, res)
	if err != nil {
		return err
	}
	*buf = msg.text
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastLocked(http.StatusOK, msg)
}

// message writes a whole response and finishes the reply.
func (p *reply) message(msg []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastLocked(http.StatusOK, message{text: msg})
}

// fail writes an error as the answer and finishes the reply. A reply that has
// its answer already stays as it is.
func (p *reply) fail(err error) {
	we := exchange.WireError(err)
	status := http.StatusOK
	if refusal := (*exchange.Refusal)(nil); errors.As(err, &refusal) {
		status = refusalStatus(we.Code)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.lastLocked(status, message{text: wire.AppendError(nil, p.id, we)}); e != nil && !errors.Is(e, errFinished) {
		p.f.opts.Logger.Debug("answer not delivered", "downstream", p.r.RemoteAddr, "err", e)
	}
}

// refusalStatus is the HTTP status of an error that the gateway answers itself.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Request Metadata.
func refusalStatus(code int64) int {
	switch code {
	case spec.CodeMethodNotFound:
		return http.StatusNotFound
	case spec.CodeInternal:
		return http.StatusOK
	}
	return http.StatusBadRequest
}

func (p *reply) notAcceptable() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = finished
	WriteError(p.w, http.StatusNotAcceptable, p.id, wire.Errorf(spec.CodeInvalidRequest,
		"the Accept header takes no form that this answer has; send Accept: %s, %s", typeJSON, typeStream))
}

// finish says that the handler returns: the writer is net/http's again.
func (p *reply) finish() {
	p.silence()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = finished
}

// lastLocked writes the response message in the form that is still open.
func (p *reply) lastLocked(status int, msg message) error {
	if p.state == undecided && p.forms.json {
		p.state = finished
		p.deadlineLocked()
		return writeJSON(p.w, status, msg)
	}
	err := p.eventLocked(msg.whole())
	if err == nil {
		p.state = finished
	}
	return err
}

// eventLocked writes msg as an event and flushes it, opening the stream first if
// need be.
func (p *reply) eventLocked(msg []byte) error {
	if err := p.openLocked(); err != nil {
		return err
	}
	if err := sse.NewWriter(p.w).Event("message", "", msg); err != nil {
		return err
	}
	return p.rc.Flush()
}

// openLocked turns an undecided reply into a stream, and sets the deadline of
// the write to come.
func (p *reply) openLocked() error {
	switch p.state {
	case finished:
		return errFinished
	case undecided:
		p.state = streaming
		h := p.w.Header()
		h.Set("Content-Type", typeStream)
		h.Set("Cache-Control", "no-cache, no-transform")
		h.Set("X-Accel-Buffering", "no")
		p.w.WriteHeader(http.StatusOK)
	}
	p.deadlineLocked()
	return nil
}

func (p *reply) deadlineLocked() {
	// A writer without deadlines (a test's recorder) can't stall either.
	_ = p.rc.SetWriteDeadline(time.Now().Add(p.f.opts.WriteTimeout))
}

// WriteError writes a JSON-RPC error as a whole HTTP response.
func WriteError(w http.ResponseWriter, status int, id wire.ID, e *wire.Error) {
	// The client is gone if this fails, and its context says so.
	_ = writeJSON(w, status, message{text: wire.AppendError(nil, id, e)})
}

func writeJSON(w http.ResponseWriter, status int, msg message) error {
	h := w.Header()
	h.Set("Content-Type", typeJSON)
	h.Set("Content-Length", strconv.Itoa(len(msg.text)+len(msg.large)))
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

// A message is a response on its way. What is large in it stays where it was read,
// since a copy would cost more than a write.
type message struct {
	text  []byte
	large []byte // belongs at text[at:]; may be empty
	at    int
}

// minLarge is how many bytes are cheaper to write apart than to copy.
const minLarge = 128 << 10

// whole returns the message in one piece.
func (m *message) whole() []byte {
	if len(m.large) == 0 {
		return m.text
	}
	return slices.Concat(m.text[:m.at], m.large, m.text[m.at:])
}

// buffers lends out buffers for messages on their way.
var buffers bufferPool

type bufferPool struct {
	pool sync.Pool
}

// maxPooled keeps one huge result from staying for ever.
const maxPooled = 4 << 20

func (b *bufferPool) get() *[]byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return buf
	}
	return new(make([]byte, 0, 4<<10))
}

func (b *bufferPool) put(buf *[]byte) {
	if cap(*buf) <= maxPooled {
		b.pool.Put(buf)
	}
}
