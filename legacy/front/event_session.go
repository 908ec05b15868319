package front

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/sse"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// SessionParam is the query parameter that names the session where a client of
	// HTTP+SSE posts its messages.
	SessionParam = "sessionId"
	// lastWords is how long calls that were cut off may take to tell their client so.
	cutGrace = 200 * time.Millisecond
)

// errStreamOver is why nothing can be sent to a client of HTTP+SSE any more.
var errStreamOver = errors.New("the event stream is over")

// An EventSession is a client on HTTP+SSE, the transport of 2024-11-05: it is told
// everything on one stream of events, and posts what it has to say. The stream's end
// is the session's. Any legacy revision may be negotiated on it.
//
// Spec: 2024-11-05, basic/transports, HTTP with SSE.
type EventSession struct {
	// Set by openEvents, read-only after.
	front  *Front
	id     SessionID
	share  mcp.Share
	conn   *Conn
	memory mcp.Room // of the stream; released by leave

	w    http.ResponseWriter
	rc   *http.ResponseController
	out  *sse.Writer   // to w; owned by who has the turn
	turn chan struct{} // capacity 1: who has put something in may write

	over sync.Once
	gone chan struct{} // closed when nothing can be written any more
	err  error         // why; read only after gone is closed
}

// ServeEvents serves the GET that opens an EventSession, until its end. messages is
// the path where its client has to post, as the client sees it. Calls in flight are
// given Drain when EndStreams ends the session, and are cancelled when its client
// leaves.
func (f *Front) ServeEvents(w http.ResponseWriter, r *http.Request, messages string, principal mcp.Principal) {
	if !accepts(r.Header, "text/event-stream") {
		writeError(w, http.StatusNotAcceptable, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"the Accept header excludes streams; send Accept: text/event-stream"))
		return
	}
	s, err := f.openEvents(w, f.opts.Share(r, principal))
	if err != nil {
		hint(w, err)
		writeError(w, http.StatusServiceUnavailable, wire.ID{}, mcp.WireError(err))
		return
	}
	begun := time.Now()
	why := s.serve(r.Context(), messages)
	f.log.Info("event stream closed", "open", time.Since(begun).Round(time.Millisecond), "reason", why)
}

// EventSession returns the session that a POST names, or nil if there is none: a
// foreign principal's is as unknown as one that never was.
func (f *Front) EventSession(id string, principal mcp.Principal) *EventSession {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.events[SessionID(id)]; s != nil && s.share.Principal == principal {
		return s
	}
	return nil
}

// Serve takes one message that was posted. It does not wait for the answer.
func (s *EventSession) Serve(m *wire.Message) { s.conn.Serve(m) }

// ServeBatch takes a batch that was posted.
func (s *EventSession) ServeBatch(body []byte) { s.conn.ServeBatch(body) }

// Refuse answers a request, on the stream: clients that probe wait for it there.
func (s *EventSession) Refuse(id wire.ID, e *wire.Error) {
	_ = s.send(wire.AppendError(nil, id, e)) // nobody is left to tell
}

// openEvents takes a place for a session and enters it where POSTs find it.
func (f *Front) openEvents(w http.ResponseWriter, share mcp.Share) (*EventSession, error) {
	select {
	case <-f.ending:
		return nil, mcp.Refuse(spec.CodeInternal, "%v; open the stream again in a moment", mcp.ErrShutdown)
	default:
	}
	room, err := mcp.Take(f.opts.Memory, share, sessionSize)
	if err != nil {
		return nil, err
	}
	if err := f.sessions.reserve(share); err != nil {
		room.Release()
		return nil, err
	}
	s := &EventSession{
		memory: room,
		front:  f,
		id:     f.newSessionID(),
		share:  share,
		w:      w,
		rc:     http.NewResponseController(w),
		out:    sse.NewWriter(w),
		turn:   make(chan struct{}, 1),
		gone:   make(chan struct{}),
	}
	s.conn = f.OpenConn(s.send, share)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events[s.id] = s
	return s, nil
}

// serve carries the session until its stream ends, and says why it did.
func (s *EventSession) serve(ctx context.Context, messages string) (why string) {
	err := s.open(messages)
	if err == nil {
		err = s.attend(ctx)
	}
	switch {
	case graceful(err):
		s.drain(ctx)
		why = err.Error()
	case stuck(err):
		s.front.opts.Metrics.Limit("write_timeout")
		why = endedStuck
	default:
		why = "its client left"
	}
	s.leave(err)
	return why
}

// open sends the headers, and as the first event where to post.
func (s *EventSession) open(messages string) error {
	return s.write(func() error {
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache, no-transform")
		h.Set("X-Accel-Buffering", "no")
		s.w.WriteHeader(http.StatusOK)
		to := url.URL{Path: messages, RawQuery: SessionParam + "=" + url.QueryEscape(string(s.id))}
		return s.out.Event(spec.EventEndpoint, "", []byte(to.String()))
	})
}

// graceful reports whether the client is there still, to be told what is left.
func graceful(err error) bool {
	return err == errEnding || err == errNoChanges || err == errLostUpstream
}

// attend keeps the stream alive until there is a reason to end it.
func (s *EventSession) attend(ctx context.Context) error {
	tick := time.NewTicker(s.front.opts.KeepAlive)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := s.write(func() error { return s.out.Comment("") }); err != nil {
				return err
			}
		case <-s.gone:
			return s.err
		case <-s.conn.Lost():
			return errLostUpstream
		case <-s.conn.noChanges:
			return errNoChanges
		case <-s.front.ending:
			return errEnding
		case <-ctx.Done():
			return s.left(ctx)
		}
	}
}

// left says why ctx ended. Where a write failed, net/http ends it before the write
// returns, which knows more.
func (s *EventSession) left(ctx context.Context) error {
	s.turn <- struct{}{} // no longer than a write takes
	<-s.turn
	select {
	case <-s.gone:
		return s.err
	default:
		return context.Cause(ctx)
	}
}

// drain ends what is in flight, in order. What does not end in time is cancelled,
// and a client that does not read is not waited for.
func (s *EventSession) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.front.opts.Drain)
	defer cancel()
	if s.conn.Shutdown(ctx) != nil {
		late := time.AfterFunc(cutGrace, func() { s.cut(errStreamOver) })
		defer late.Stop()
	}
	s.conn.Close()
}

// leave ends the session. The response must not be written to once the handler has
// returned: a write under way is cut off, and the turn is not given back.
func (s *EventSession) leave(err error) {
	if graceful(err) {
		s.lose(err)
	} else {
		s.cut(err)
	}
	s.turn <- struct{}{}
	s.conn.Close()
	s.front.mu.Lock()
	delete(s.front.events, s.id)
	s.front.mu.Unlock()
	s.front.sessions.unreserve(s.share)
	s.memory.Release()
}

// cut ends the stream under a write.
func (s *EventSession) cut(err error) {
	s.lose(err)
	_ = s.rc.SetWriteDeadline(time.Unix(1, 0)) // without deadlines nothing can stall either
}

func (s *EventSession) lose(err error) {
	s.over.Do(func() {
		s.err = err
		close(s.gone)
	})
}

// send puts a message on the stream.
func (s *EventSession) send(msg []byte) error {
	return s.write(func() error { return s.out.Event("message", "", msg) })
}

// write has the turn while put writes. A client that does not take what is written
// within the write time-out is lost.
func (s *EventSession) write(put func() error) error {
	select {
	case s.turn <- struct{}{}:
	case <-s.gone:
		return errStreamOver
	}
	defer func() { <-s.turn }()
	select {
	case <-s.gone:
		return errStreamOver
	default:
	}
	// A writer without deadlines (a test's recorder) can't stall either.
	_ = s.rc.SetWriteDeadline(time.Now().Add(s.front.opts.WriteTimeout))
	err := put()
	if err == nil {
		err = s.rc.Flush()
	}
	if err != nil {
		s.lose(err)
	}
	return err
}
