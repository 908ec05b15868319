package front

import (
	"context"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A service serves what a client sends in its session. A bridged one makes requests that
// stand alone; a relayed one passes messages on to an upstream session of the client's own.
type service interface {
	// request serves a request of from. Its reply goes to w.
	request(m *wire.Message, from *mcp.Identity, w replyWriter)
	// receive handles a notification or a response; neither gets a reply.
	receive(m *wire.Message)
	// post is receive for what came as a POST of its own, which it answers.
	post(w http.ResponseWriter, r *http.Request, m *wire.Message)
	// listen returns the stream that a GET begins, and after which event. lost says that
	// the client had another, of which nothing is known.
	listen(lost bool) (st *eventStream, from uint64)
	// start is called when the client has the answer to initialize, or can't get it.
	// ended is called once if the session ends upstream. It reports whether the client is
	// told of changes by its subscriptions.
	start(ended func()) (tells bool)
	// hasOwnUpstream reports whether the session takes one upstream for itself.
	hasOwnUpstream() bool
	// closeUpstream ends that, and waits until requests were answered.
	closeUpstream()
}

// A bridged session is served by requests that stand alone.
type bridged struct{ *session }

// request implements service. The request is served on a goroutine of the session's: it
// does not end with the connection that it came on.
func (s bridged) request(m *wire.Message, from *mcp.Identity, w replyWriter) {
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &request{Call: s.newCall(m.ID, cancel), session: s.session, from: from, w: w}
	if err := s.admit(r, m); err != nil {
		cancel(nil)
		r.refuse(err)
		return
	}
	go func() { // ends when the handler returns, which close makes it
		defer s.calls.Leave(r)
		defer cancel(nil)
		r.serve(ctx, m)
	}()
}

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
func (s bridged) listen(lost bool) (*eventStream, uint64) {
	if lost {
		s.subscriptions.markAll()
	}
	return s.streams.add(wire.ID{}), 0
}

// start implements service.
func (s bridged) start(func()) (tells bool) { return true }

// hasOwnUpstream implements service.
func (s bridged) hasOwnUpstream() bool { return false }

// closeUpstream implements service.
func (s bridged) closeUpstream() {}
