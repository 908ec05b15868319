package front

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/eventstream"
)

// endedUpstream is why a client's session ends after its upstream session.
const endedUpstream = "its session upstream ended"

// A relayed session has its own upstream session, to which its messages are forwarded unchanged.
type relayed struct {
	*session
	upstream    mcp.Relay
	unsolicited *eventstream.Stream // over Streamable HTTP: receives messages outside of calls
}

// relay opens an upstream session for s, if the server is also legacy. answer is the
// server's response to initialize. It reports false if the server refused, as answer then
// says, or is modern.
func (f *Front) relay(ctx context.Context, s *session, req *mcp.Request, m *wire.Message) (ok bool, answer []byte, err error) {
	if f.opts.Relayer == nil {
		return false, nil, nil
	}
	r := &relayed{session: s}
	if s.conn == nil {
		r.unsolicited = s.streams.AddKept() // before messages can arrive
	}
	err = f.whenStarted(ctx, req, func(ctx context.Context) error {
		r.upstream, answer, err = f.opts.Relayer.OpenRelay(ctx, req, m, r)
		return err
	})
	if err != nil || r.upstream == nil {
		s.streams.Forget(r.unsolicited)
		return false, answer, err
	}
	version, _ := wire.GetString(wire.Get(answer, "result"), "protocolVersion")
	s.revision, s.service = spec.Revision(version), r
	s.subscriptions.offer(answer)
	return true, answer, nil
}

// Message implements [mcp.RelayClient].
func (s *relayed) Message(ctx context.Context, text []byte, anyway bool) error {
	if s.conn != nil {
		return s.conn.send(text)
	}
	if anyway && !s.unsolicited.IsRead() {
		if c := newestOf(s.calls.All()); c != nil {
			return c.w.send(ctx, text)
		}
	}
	return s.unsolicited.Put(ctx, text, false)
}

// Rest implements [mcp.RelayClient]. The client of a connection never rests: it is there until
// the connection ends, and its session is in no table.
func (s *relayed) Rest() (d time.Duration, begun, ok bool) { return s.front.sessions.rest(s.session) }

// Retire implements [mcp.RelayClient].
func (s *relayed) Retire(least time.Duration) bool { return s.front.sessions.retire(s.session, least) }

// newestOf returns the one of calls, oldest first, on which a message most likely reaches the client: the last
// one with a connection, or else the last one that the client may resume; nil if there is neither.
func newestOf(calls []*request) (newest *request) {
	best := unreachable
	for _, c := range calls {
		if at := c.w.reach(); at > unreachable && at >= best {
			newest, best = c, at
		}
	}
	return newest
}

// start implements service: the session ends with its upstream session.
func (s *relayed) start(ended func()) (tells bool) {
	s.spawn(func(ctx context.Context) { // ends with the session, or the relay
		select {
		case <-s.upstream.Done():
			ended()
		case <-ctx.Done():
		}
	})
	s.upstream.Start()
	return false
}

// hasOwnUpstream implements service.
func (s *relayed) hasOwnUpstream() bool { return true }

// closeUpstream implements service. Calls get an error on their streams.
func (s *relayed) closeUpstream() {
	s.upstream.Close()
	s.wait()
}

// listen implements service: there is one stream, which the connections take over from
// each other.
func (s *relayed) listen() (*eventstream.Stream, uint64) {
	return s.unsolicited, s.unsolicited.Position()
}

// request implements service: it forwards the request.
func (s *relayed) request(m *wire.Message, from origin, w replyWriter) {
	r := &relayedRequest{request{Call: s.newCall(m.ID, func(error) {}), session: s.session, from: from, w: w}}
	if err := s.enter(&r.request, m); err != nil {
		r.refuse(err)
		return
	}
	s.upstream.Call(m, s.noting(m, r))
}

// abandon implements service: it cancels the request as its client would.
func (s *relayed) abandon(r *request) {
	r.abandoned.Store(true)
	params := wire.AppendEdited(nil, nil,
		wire.Edit{Name: "requestId", Value: r.ID.Append(nil)},
		wire.Edit{Name: "reason", Value: wire.Quote("the client is gone")})
	m, err := wire.Parse(wire.AppendNotification(nil, spec.NotifyCancelled, params, nil), wire.Options{})
	if err != nil {
		panic(err) // it was just written
	}
	s.spawn(func(ctx context.Context) { s.deliver(ctx, &m, make(chan struct{})) }) // as receive
}

// A relayedRequest is a request that is forwarded.
type relayedRequest struct{ request }

// Identity implements [mcp.RelayedCall].
func (r *relayedRequest) Identity() *mcp.Identity { return r.from.identity }

// Arrival implements [mcp.RelayedCall].
func (r *relayedRequest) Arrival() *trace.Arrival { return r.from.arrival }

// Trace implements [mcp.RelayedCall]: the gateway observes the call.
func (r *relayedRequest) Trace() *trace.Request { return nil }

// Message implements [mcp.RelayedCall].
func (r *relayedRequest) Message(ctx context.Context, text []byte) error { return r.w.send(ctx, text) }

// Answer implements [mcp.RelayedCall].
func (r *relayedRequest) Answer(text []byte, _ error) {
	defer r.session.calls.Leave(&r.request)
	r.session.free(&r.request) // the client may use the id again at once
	r.respond(text)
}

// Lost implements [mcp.RelayedCall].
func (r *relayedRequest) Lost(err error) {
	defer r.session.calls.Leave(&r.request)
	r.session.free(&r.request)
	switch {
	case errors.Is(err, mcp.ErrCancelled) && r.abandoned.Load():
		r.w.reply(r.failure(errGone))
	case errors.Is(err, mcp.ErrCancelled):
		r.w.noReply()
	case errors.Is(err, mcp.ErrSessionEnded):
		r.w.sessionEnded(sessionGone(r.ID, err))
	default:
		r.w.reply(r.failure(err))
	}
}

// post implements service: it forwards a notification or a response.
func (s *relayed) post(w http.ResponseWriter, r *http.Request, m *wire.Message) {
	switch err := s.upstream.Send(context.WithoutCancel(r.Context()), m); { // it is passed on though its sender leaves
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case errors.Is(err, mcp.ErrSessionEnded):
		s.front.sessions.end(s.session, endedUpstream)
		downstream.WriteError(w, http.StatusNotFound, wire.ID{}, wire.Errorf(spec.CodeSessionNotFound, "%v; initialize anew", err))
	case mcp.MayTryLater(err):
		downstream.WriteError(w, setRetryAfter(w, err, http.StatusServiceUnavailable), wire.ID{}, mcp.WireError(err))
	default:
		s.front.log.Warn("message of client was not delivered", "session", s.name, "error", err)
		downstream.WriteError(w, setRetryAfter(w, err, http.StatusBadGateway), wire.ID{}, mcp.WireError(err))
	}
}

// receive implements service: it forwards a notification or a response that has no HTTP
// response to report a failure in. A server that does not read does not delay the
// session's end.
func (s *relayed) receive(m *wire.Message) {
	sent := make(chan struct{})
	if s.spawn(func(ctx context.Context) { s.deliver(ctx, m, sent) }) { // ends with the session, or as Send is bounded
		s.upstream.Await(m, sent)
	}
}

func (s *relayed) deliver(ctx context.Context, m *wire.Message, sent chan<- struct{}) {
	defer close(sent)
	if err := s.upstream.Send(ctx, m); err != nil {
		s.front.drop("client message")
		s.front.log.Warn("message of client was not delivered", "session", s.name, "error", err)
	}
}

var (
	_ service         = (*relayed)(nil)
	_ mcp.RelayClient = (*relayed)(nil)
	_ mcp.RelayedCall = (*relayedRequest)(nil)
	_ mcp.RelayedCall = (*subscribing)(nil)
)
