package front

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/eventstream"
)

// earlyStream is the time after which the reply to a call of 2025-11-25 becomes a stream,
// so that its client has an event id for resuming.
const earlyStream = time.Second

// goneTime is how long the response to a call may be without a connection until its client
// counts as gone. Some clients send no cancellation when they give up, so that a server
// that hangs would be busy with such a call for hours.
const goneTime = time.Minute

// An httpReply is the reply to one POST. It stays undecided between a JSON body and a
// stream until a message precedes the responses, or they take long.
//
// It is the replyWriter of the POST's requests, and lives until the last of them has its
// response, which may be after the connection broke. Until then the session is in use.
type httpReply struct {
	session   *session
	first     wire.ID       // the call's, or that of the first call of a batch
	batch     bool          // the responses are written as an array
	form      form          // the only one that the client accepts
	plain     chan []byte   // capacity 1: the body if there is no stream
	streaming chan struct{} // closed when there is a stream

	// mu guards the fields below. Streams have a lock of their own, which may be
	// taken under it.
	mu      sync.Mutex
	pending int // responses that have not arrived
	answers [][]byte
	stream  *eventstream.Stream // nil while undecided
	decided bool                // there is a body in plain, or a stream
	lost    bool                // the upstream session has ended
	beside  mcp.Hint            // that of the last answer that is an error with one
	unread  bool                // the connection broke before anything was written
	left    *time.Timer         // since then; nil if there is a stream, which has its own
	memory  []mcp.Reservation
}

// newHTTPReply returns the reply to requests of one POST, of which the client accepts f.
func (s *session) newHTTPReply(first wire.ID, requests int, batch bool, f form) *httpReply {
	return &httpReply{session: s, first: first, batch: batch, form: f, pending: requests, plain: make(chan []byte, 1), streaming: make(chan struct{})}
}

// send implements replyWriter.
func (p *httpReply) send(ctx context.Context, msg []byte) error {
	if p.form == onlyJSON {
		return p.sendAside(ctx, msg)
	}
	return p.streamed().Put(ctx, msg, false)
}

// errNoStream is why a client is not asked during a call whose response can't be a stream.
var errNoStream error = &cannotAsk{wire.Errorf(spec.CodeInternal,
	"the client can't be asked during this call: its Accept header excludes text/event-stream, and its session has no GET stream; accept both application/json and text/event-stream")}

// sendAside sends a message that precedes a response which can't be a stream: questions, and
// their ends, to the GET stream of the session. Others, which nobody waits for, are dropped.
func (p *httpReply) sendAside(ctx context.Context, msg []byte) error {
	isQuestion := wire.Get(msg, "id") != nil
	if !isQuestion && !wire.Says(wire.Get(msg, "method"), spec.NotifyCancelled) {
		p.session.front.drop("no stream accepted")
		return nil
	}
	err := p.session.streams.PutAside(ctx, msg)
	if err == eventstream.ErrNobodyListens {
		return errNoStream
	}
	return err
}

// streamed makes the reply a stream.
func (p *httpReply) streamed() *eventstream.Stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stream == nil {
		p.stream = p.session.streams.Add(p.first)
		if p.left == nil {
			p.stream.OnGone(goneTime, p.gone)
		}
		if !p.decided { // else the connection broke, and serve has returned
			p.stream.Expect(true)
			close(p.streaming)
		}
		p.decided = true
		if p.session.revision >= spec.Rev20251125 {
			_ = p.stream.Put(context.Background(), nil, false) // does not wait, since nothing reads yet
		}
		for _, a := range p.answers {
			_ = p.stream.Put(context.Background(), a, false)
		}
		p.answers = nil
		p.releaseMemoryLocked()
	}
	return p.stream
}

// reply implements replyWriter.
func (p *httpReply) reply(r response) { p.settle(&r) }

// noReply implements replyWriter.
func (p *httpReply) noReply() { p.settle(nil) }

func (p *httpReply) settle(r *response) {
	if p.settled(r) {
		p.session.front.sessions.release(p.session)
	}
}

// settled handles a response, nil for none, and reports whether it was the last one.
func (p *httpReply) settled(r *response) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending--
	last = p.pending == 0
	if last && p.left != nil {
		p.left.Stop()
	}
	switch {
	case p.stream != nil && r != nil:
		r.memory.Release() // the stream takes its own
		p.putLocked(r, last)
	case p.stream != nil && last:
		p.stream.Finish()
	case p.stream == nil:
		p.keepLocked(r)
		if last {
			p.decided = true
			p.plain <- p.body()
		}
	}
	return last
}

// putLocked puts a response on the stream, or an error if there is no memory for it. If
// that also fails, the session has ended.
func (p *httpReply) putLocked(r *response, last bool) {
	err := p.stream.Put(context.Background(), r.msg, last)
	if err == nil || last {
		return
	}
	_ = p.stream.Put(context.Background(), eventstream.NoMemoryResponse(r.id), false)
}

// keepLocked stores a response, nil for none, until all have arrived and were written.
func (p *httpReply) keepLocked(r *response) {
	if r == nil {
		return
	}
	p.answers = append(p.answers, r.msg)
	p.memory = append(p.memory, r.memory)
	if r.hint != (mcp.Hint{}) {
		p.beside = r.hint
	}
	if p.unread {
		p.releaseMemoryLocked()
	}
}

// releaseMemory gives back the memory of responses that were written, or never will be.
func (p *httpReply) releaseMemory() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.releaseMemoryLocked()
}

func (p *httpReply) releaseMemoryLocked() {
	for i := range p.memory {
		p.memory[i].Release()
	}
	p.memory = nil
}

// body returns the responses as one body, nil if there are none.
func (p *httpReply) body() []byte {
	switch {
	case len(p.answers) == 0:
		return nil
	case !p.batch:
		return p.answers[0]
	}
	return appendBatch(p.answers)
}

// appendBatch returns messages as an array.
func appendBatch(msgs [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(msgs, []byte{','})...), ']')
}

// serve waits for the responses and writes them. It returns early if the client leaves; if
// there is a stream, it stores further messages. It returns the status; zero for none.
func (p *httpReply) serve(w http.ResponseWriter, r *http.Request) (status int) {
	patience := p.session.front.opts.KeepAlive
	if p.session.revision >= spec.Rev20251125 {
		patience = min(patience, earlyStream)
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	if p.form == onlyJSON {
		late.Stop() // it waits
	}
	defer p.releaseMemory()
	for {
		select {
		case body := <-p.plain:
			status, over := p.status(w.Header())
			if over {
				p.session.front.sessions.end(p.session, endedUpstream) // before the client gets the status
			}
			p.session.front.write(w, status, body, p.form)
			return status
		case <-p.streaming:
			p.session.serveStream(w, r, p.streamed(), 0, nil)
			return http.StatusOK
		case <-late.C:
			p.streamedUnlessDone()
		case <-r.Context().Done():
			p.abandon()
			return 0
		}
	}
}

// streamedUnlessDone makes a reply that takes long a stream.
func (p *httpReply) streamedUnlessDone() {
	p.mu.Lock()
	done := p.decided
	p.mu.Unlock()
	if !done {
		p.streamed()
	}
}

// abandon records that the connection broke before anything was written.
func (p *httpReply) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decided, p.unread = true, true
	switch {
	case p.stream != nil:
		p.stream.Expect(false)
	case p.pending > 0:
		p.left = time.AfterFunc(goneTime, p.gone)
	}
}

// gone cancels the calls whose response nobody has read for goneTime.
func (p *httpReply) gone() {
	s := p.session
	for _, r := range s.calls.All() {
		if r.w != p {
			continue
		}
		s.front.drop("abandoned call")
		s.front.log.Info("call cancelled: its client is gone", "session", s.name, "after", goneTime)
		s.abandon(r)
	}
}

// A reachability says whether messages that precede the response to a POST reach the
// client.
type reachability uint8

const (
	unreachable reachability = iota // its connection broke before there was a stream
	aside                           // on the GET stream, if there is one
	resumable                       // if the client reconnects
	connected
)

// reach implements replyWriter.
func (p *httpReply) reach() reachability {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stream == nil && p.decided:
		return unreachable
	case p.form == onlyJSON:
		return aside
	case p.stream == nil || p.stream.IsRead():
		return connected
	}
	return resumable
}

// sessionEnded implements replyWriter: clients react to the HTTP status alone.
func (p *httpReply) sessionEnded(msg []byte) {
	p.mu.Lock()
	p.lost = true
	p.mu.Unlock()
	p.settle(&response{msg: msg})
}

// status returns the HTTP status of a reply that is not a stream.
func (p *httpReply) status(h http.Header) (status int, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beside.SetHeader(h)
	switch {
	case p.batch: // its other responses may be results
		return http.StatusOK, false
	case p.lost:
		return http.StatusNotFound, true
	}
	return cmp.Or(p.beside.Status, http.StatusOK), false
}

// write writes the responses as JSON, or as an event if the client accepts only that. A
// cancelled request has none: its HTTP response is that of a notification.
func (f *Front) write(w http.ResponseWriter, status int, body []byte, only form) {
	if body == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	res := downstream.NewResponse(w, f.opts.WriteTimeout)
	if only == onlyStream && status == http.StatusOK {
		_ = res.Last(body) // an error means that the client has left
		return
	}
	_ = res.JSON(status, downstream.Message{Text: body}) // as above
}

// serveStream writes a call's stream as the response to r, from after an event. It ends
// with a credential, which is nil if r is the call itself.
func (s *session) serveStream(w http.ResponseWriter, r *http.Request, st *eventstream.Stream, from uint64, until *mcp.Identity) {
	var here *downstream.Streams // nil: a call's stream ends soon, and its connection is used again
	here.Serve(w, r, s.front.opts.WriteTimeout, func(ctx context.Context, res *downstream.Response) func() {
		sw := st.Attach(res, from, nil)
		defer sw.Until(until)()
		err := res.Comment() // some clients wait for the headers
		if err == nil {
			err = sw.Run(ctx)
		}
		sw.Close(err)
		return nil
	})
}
