package front

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/eventstream"
)

const (
	// SessionParam is the query parameter that names the session where a client of
	// HTTP+SSE posts its messages.
	SessionParam = "sessionId"
	// cutGrace is how long cancelled calls may take to write their responses.
	cutGrace = time.Second
)

// An EventSession is a client on HTTP+SSE, the transport of 2024-11-05: it receives all
// messages on one event stream, and posts its own. The session ends with the stream. Any
// legacy revision may be negotiated.
//
// Spec: 2024-11-05, basic/transports, HTTP with SSE.
type EventSession struct {
	// Set by openEvents, read-only after.
	id     SessionID
	conn   *Conn
	memory mcp.Reservation // of the stream; released by leave
	begun  time.Time
	res    *downstream.Response

	// mu guards the fields below.
	mu         sync.Mutex
	turns      *wake.Turns   // of the stream; nil before open
	over       error         // the reason for ending the stream gracefully; nil before finish
	credential *mcp.Identity // the stream ends with it
	forget     func()        // stops watching the credential
	left       bool
}

// ServeEvents serves the GET that opens an EventSession, until its end. messages is the
// path to which the client has to post, as the client sees it. When EndStreams ends the
// session, calls in flight may take Drain; when the client leaves, they are cancelled. opened,
// if it is not nil, is told of the session before the response begins.
func (f *Front) ServeEvents(w http.ResponseWriter, r *http.Request, messages string, sender mcp.Sender, opened func(SessionID)) {
	if !downstream.Accepts(r.Header, "text/event-stream") {
		downstream.WriteError(w, http.StatusNotAcceptable, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"the Accept header excludes streams; send Accept: text/event-stream"))
		return
	}
	s, err := f.openEvents(sender)
	if err != nil {
		downstream.WriteError(w, setRetryAfter(w, err, http.StatusServiceUnavailable), wire.ID{}, mcp.WireError(err))
		return
	}
	if s.begun = time.Now(); opened != nil {
		opened(s.id)
	}
	f.opts.Streams.ServeTurns(w, r, f.opts.WriteTimeout, func(ctx context.Context, res *downstream.Response) downstream.Turn {
		s.open(res, messages)
		return func() bool { return s.turn(ctx) }
	})
}

// EventSession returns the session that a POST names, or nil if there is none for the
// principal.
func (f *Front) EventSession(id string, principal mcp.Principal) *EventSession {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.events[SessionID(id)]; s != nil && s.conn.sender.Principal == principal {
		return s
	}
	return nil
}

// Client returns the name and version of the client; empty before initialize.
func (s *EventSession) Client() string {
	on, _ := s.conn.current()
	if on == nil {
		return ""
	}
	return mcp.ClientName(on.info)
}

// EndEvents ends an EventSession as EndStreams ends all of them. It reports false if there is
// none.
func (f *Front) EndEvents(id SessionID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.events[id]
	if s != nil {
		s.finish(eventstream.ErrEnding)
	}
	return s != nil
}

// Serve handles one message that from has posted. It does not wait for the response.
func (s *EventSession) Serve(m *wire.Message, from *mcp.Identity) {
	s.renew(from)
	s.conn.receive(queuedMessage{m: m, from: origin{from, s.conn.sender.Arrival}})
}

// ServeBatch handles a posted batch.
func (s *EventSession) ServeBatch(body []byte, from *mcp.Identity) {
	s.renew(from)
	s.conn.receive(queuedMessage{batch: body, from: origin{from, s.conn.sender.Arrival}})
}

// Refuse answers a request with an error on the stream, where clients that probe wait for
// it.
func (s *EventSession) Refuse(id wire.ID, e *wire.Error) {
	_ = s.send(wire.AppendError(nil, id, e)) // an error means that the client has left
}

// renew lets the stream last as long as another credential of its principal, if that
// expires later: without its stream there is no session.
func (s *EventSession) renew(id *mcp.Identity) {
	s.mu.Lock()
	renewed := outlasts(id, s.credential)
	if renewed {
		s.credential = id
	}
	s.mu.Unlock()
	if renewed {
		s.watch(id)
	}
}

// watch ends the stream with a credential, instead of the previous one.
func (s *EventSession) watch(id *mcp.Identity) {
	forget := s.conn.front.opts.Until(id, func(reason error) { s.finish(&credentialOver{reason}) })
	s.mu.Lock()
	before, left := s.forget, s.left
	s.forget = forget
	s.mu.Unlock()
	before()
	if left {
		forget()
	}
}

// outlasts reports whether a credential may expire later than the previous one.
func outlasts(id, before *mcp.Identity) bool {
	switch {
	case id == before || !before.MayEnd():
		return false
	case before.Expires.IsZero() || id == nil || id.Expires.IsZero():
		return id == nil || id.Expires.IsZero()
	}
	return id.Expires.After(before.Expires)
}

// errLostUpstream is why the stream of a session ends with the upstream session.
var errLostUpstream = errors.New("the server ended the session")

// A credentialOver reports that a session has ended with its credential.
type credentialOver struct{ reason error }

func (e *credentialOver) Error() string { return e.reason.Error() }

// openEvents returns a new session, within the limits.
func (f *Front) openEvents(sender mcp.Sender) (*EventSession, error) {
	if f.isEnding() {
		return nil, mcp.Refuse(spec.CodeInternal, "%v; open the stream again in a moment", f.over())
	}
	memory, err := mcp.Reserve(f.opts.Memory, sender.Share, sessionSize)
	if err != nil {
		return nil, err
	}
	if err := f.sessions.reserve(sender.Share); err != nil {
		memory.Release()
		return nil, err
	}
	s := &EventSession{id: f.newSessionID(), memory: memory, credential: sender.Identity, forget: func() {}}
	s.conn = f.openConn(s.send, func() { s.finish(errLostUpstream) }, sender)
	return s, nil
}

// open registers the session for POSTs, and sends the first event, which names the path to
// post to.
func (s *EventSession) open(res *downstream.Response, messages string) {
	s.res = res
	s.mu.Lock()
	s.turns = res.Turns()
	s.mu.Unlock()
	s.turns.Send() // it may be over already
	s.conn.mail.Notify(s.turns)
	res.KeepAlive(s.conn.front.opts.KeepAlive)
	s.conn.front.mu.Lock()
	s.conn.front.events[s.id] = s
	s.conn.front.mu.Unlock()
	s.watch(s.credential)
	if s.conn.front.isEnding() { // possibly since openEvents
		s.finish(eventstream.ErrEnding)
	}
	to := url.URL{Path: messages, RawQuery: SessionParam + "=" + url.QueryEscape(string(s.id))}
	_ = res.Event(spec.EventEndpoint, "", []byte(to.String())) // the stream's context ends if it fails
}

// finish ends the stream gracefully.
func (s *EventSession) finish(why error) {
	s.mu.Lock()
	s.over = cmp.Or(s.over, why)
	turns := s.turns
	s.mu.Unlock()
	turns.Send()
}

// turn writes change notifications, and ends the session once there is a reason. The goroutines that
// serve requests write their messages themselves.
func (s *EventSession) turn(ctx context.Context) (over bool) {
	var err error
	if s.conn.writeChanges() == eventstream.ErrNoChanges {
		err = eventstream.ErrNoChanges
	}
	s.mu.Lock()
	err = cmp.Or(err, s.over)
	s.mu.Unlock()
	if err == nil && ctx.Err() != nil {
		err = s.res.Cause(ctx)
	}
	if over = err != nil; over {
		s.end(ctx, err)
	}
	return over
}

// end ends the session. err is the reason.
func (s *EventSession) end(ctx context.Context, err error) {
	front := s.conn.front
	why := "its client left"
	switch {
	case graceful(err):
		s.drain(ctx)
		why = err.Error()
	case eventstream.Stuck(err):
		front.limit("write_timeout")
		why = endedStuck
	}
	s.leave(graceful(err))
	downstream.ReportStray(ctx, front.opts.Metrics, front.opts.Name, front.log)
	front.log.Info("event stream closed", "open", time.Since(s.begun).Round(time.Millisecond), "reason", why, s.conn.sender.Principal.Attr())
}

// graceful reports whether the client is still connected, so that its calls may finish.
func graceful(err error) bool {
	if over := (*credentialOver)(nil); errors.As(err, &over) {
		return true
	}
	return err == eventstream.ErrEnding || err == eventstream.ErrNoChanges || err == errLostUpstream
}

// drain lets the calls in flight finish, and cancels those that take longer than Drain. It
// does not wait for a client that does not read.
func (s *EventSession) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.conn.front.opts.Drain)
	defer cancel()
	if s.conn.Shutdown(ctx) != nil {
		late := time.AfterFunc(cutGrace, s.res.Cut)
		defer late.Stop()
	}
	s.conn.Close()
}

// leave removes the session.
func (s *EventSession) leave(inOrder bool) {
	s.mu.Lock()
	s.left = true
	forget := s.forget
	s.mu.Unlock()
	forget()
	if !inOrder {
		s.res.Cut()
	}
	_ = s.res.End() // an error means that the client has left
	s.conn.Close()
	s.conn.front.mu.Lock()
	delete(s.conn.front.events, s.id)
	s.conn.front.mu.Unlock()
	s.conn.front.sessions.unreserve(s.conn.sender.Share)
	s.memory.Release()
}

// send writes a message to the stream.
func (s *EventSession) send(msg []byte) error { return s.res.Event("message", "", msg) }
