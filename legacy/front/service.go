package front

import (
	"context"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/eventstream"
)

// A service serves a client's messages in its session. A bridged one makes independent
// requests of them; a relayed one forwards them to the client's own upstream session.
type service interface {
	// request serves a request of from. Its reply goes to w.
	request(m *wire.Message, from origin, w replyWriter)
	// abandon cancels a request at the server, because its client is gone.
	abandon(r *request)
	// receive handles a notification or a response; neither gets a reply.
	receive(m *wire.Message)
	// post is receive for a message in its own POST, which it answers.
	post(w http.ResponseWriter, r *http.Request, m *wire.Message)
	// listen returns the stream for a GET, and the event after which it begins.
	listen() (st *eventstream.Stream, from uint64)
	// start is called when the client has the response to initialize, or can't get it. It
	// calls ended once if the upstream session ends. It reports whether the session's
	// subscriptions report changes.
	start(ended func()) (tells bool)
	// hasOwnUpstream reports whether the session has its own upstream session.
	hasOwnUpstream() bool
	// closeUpstream ends the upstream session, and waits for the responses to requests, which were
	// cancelled: their streams end after it.
	closeUpstream()
}

// An origin is where a message comes from.
type origin struct {
	identity *mcp.Identity  // its sender; nil for an anonymous one
	arrival  *trace.Arrival // nil while nobody observes
}

func originOf(s mcp.Sender) origin { return origin{s.Identity, s.Arrival} }

// A bridged session makes independent requests of a client's requests.
type bridged struct{ *session }

// request implements service. A goroutine of the session serves the request, independently
// of the connection on which it arrived.
func (s bridged) request(m *wire.Message, from origin, w replyWriter) {
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &request{Call: s.newCall(m.ID, cancel), session: s.session, from: from, w: w}
	if err := s.enter(r, m); err != nil {
		cancel(nil)
		r.refuse(err)
		return
	}
	go func() { // ends with the handler, which close cancels
		wake.GrowStack()
		defer s.calls.Leave(r)
		defer cancel(nil)
		r.serve(ctx, m)
	}()
}

// abandon implements service.
func (s bridged) abandon(r *request) { r.Cancel(errGone) }

// receive implements service.
func (s bridged) receive(m *wire.Message) {
	if m.Kind() == wire.Response {
		s.receiveResponse(m)
	} else {
		s.receiveNotification(m)
	}
}

// post implements service.
func (s bridged) post(w http.ResponseWriter, _ *http.Request, m *wire.Message) {
	s.receive(m)
	w.WriteHeader(http.StatusAccepted)
}

// listen implements service.
func (s bridged) listen() (*eventstream.Stream, uint64) {
	return s.streams.Add(wire.ID{}), 0
}

// start implements service.
func (s bridged) start(func()) (tells bool) { return true }

// hasOwnUpstream implements service.
func (s bridged) hasOwnUpstream() bool { return false }

// closeUpstream implements service: there is none. A handler that does not heed its context, and a
// client that does not read, hold nothing up.
func (s bridged) closeUpstream() {
	ctx, cancel := context.WithTimeout(context.Background(), cutGrace)
	defer cancel()
	_ = s.calls.Wait(ctx) // close waits for the rest
}
