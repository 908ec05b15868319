package front

import (
	"context"
	"errors"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// endedUpstream is why a session of a client ends whose own session upstream has.
const endedUpstream = "its session upstream ended"

// A relayed session has an upstream session of its own, to which its messages are passed on
// as they are.
type relayed struct {
	*session
	upstream    mcp.Relay
	unsolicited *eventStream // over Streamable HTTP: takes what belongs to no call
}

// relay opens the client's own session upstream, if that is of the same era, and has it
// serve s. answer is what the server says to initialize. It reports false if the server
// refused, which answer says then, or is of the other era.
func (f *Front) relay(ctx context.Context, s *session, req *mcp.Request, m *wire.Message) (ok bool, answer []byte, err error) {
	if f.opts.Relayer == nil {
		return false, nil, nil
	}
	r := &relayed{session: s}
	if s.conn == nil {
		r.unsolicited = s.streams.addKept() // before anything is heard
	}
	err = f.whenStarted(ctx, req, func(ctx context.Context) error {
		r.upstream, answer, err = f.opts.Relayer.OpenRelay(ctx, req, m, r)
		for errors.Is(err, mcp.ErrFull) && f.sessions.evictRelayed(ctx, s.share) {
			r.upstream, answer, err = f.opts.Relayer.OpenRelay(ctx, req, m, r)
		}
		return err
	})
	if err != nil || r.upstream == nil {
		s.streams.forget(r.unsolicited)
		return false, answer, err
	}
	version, _ := wire.GetString(wire.Get(answer, "result"), "protocolVersion")
	s.revision, s.service = spec.Revision(version), r
	return true, answer, nil
}

// Message implements [mcp.RelayClient].
func (s *relayed) Message(ctx context.Context, text []byte, anyway bool) error {
	if s.conn != nil {
		return s.conn.send(text)
	}
	if anyway && !s.unsolicited.isRead() {
		if c := s.newestCall(); c != nil {
			return c.w.send(ctx, text)
		}
	}
	return s.unsolicited.put(ctx, text, false)
}

// Idle implements [mcp.RelayClient]. On a connection the client is there as long as that
// is.
func (s *relayed) Idle() bool { return s.conn == nil && s.front.sessions.isIdle(s.session) }

// newestCall returns the call in flight whose client is likeliest to hear of it: the
// last one that a connection waits for, else the last that a client may come back to. It
// returns nil if there is neither.
func (s *relayed) newestCall() (newest *request) {
	best := unreachable
	for _, c := range s.calls.All() { // oldest first
		if at := c.w.reach(); at > unreachable && at >= best {
			newest, best = c, at
		}
	}
	return newest
}

// start implements service: it has the session end with the one upstream.
func (s *relayed) start(ended func()) (tells bool) {
	s.spawn(func(ctx context.Context) { // ends with the session, or the link
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

// closeUpstream implements service. Calls are told on their streams that there will be no
// answer.
func (s *relayed) closeUpstream() {
	s.upstream.Close()
	s.wait()
}

// listen implements service: there is one stream, whichever connection carries it.
func (s *relayed) listen(bool) (*eventStream, uint64) {
	return s.unsolicited, s.unsolicited.position()
}

// request implements service: it passes the request on.
func (s *relayed) request(m *wire.Message, from *mcp.Identity, w replyWriter) {
	r := &relayedRequest{request{Call: s.newCall(m.ID, func(error) {}), session: s.session, from: from, w: w}}
	if err := s.admit(&r.request, m); err != nil {
		r.refuse(err)
		return
	}
	s.upstream.Call(m, r)
}

// A relayedRequest is a request that was passed on.
type relayedRequest struct{ request }

// Identity implements [mcp.RelayedCall].
func (r *relayedRequest) Identity() *mcp.Identity { return r.from }

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
	case errors.Is(err, mcp.ErrCancelled):
		r.w.noReply()
	case errors.Is(err, mcp.ErrSessionEnded):
		r.w.sessionEnded(sessionGone(r.ID, err))
	default:
		r.w.reply(r.failure(err))
	}
}

// post implements service: it passes on what has no answer.
func (s *relayed) post(w http.ResponseWriter, r *http.Request, m *wire.Message) {
	switch err := s.upstream.Send(context.WithoutCancel(r.Context()), m); { // it is passed on though its sender leaves
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case errors.Is(err, mcp.ErrSessionEnded):
		s.front.sessions.end(s.session, endedUpstream)
		downstream.WriteError(w, http.StatusNotFound, wire.ID{}, wire.Errorf(spec.CodeSessionNotFound, "%v; initialize anew", err))
	default:
		s.front.log.Warn("message of client was not delivered", "session", s.name, "error", err)
		downstream.WriteError(w, setRetryAfter(w, err, http.StatusBadGateway), wire.ID{}, mcp.WireError(err))
	}
}

// receive implements service: it passes on what has no answer, where nobody could be told
// of a failure. The session's end is not held up by a server that does not take it.
func (s *relayed) receive(m *wire.Message) {
	sent := make(chan struct{})
	if s.spawn(func(ctx context.Context) { s.deliver(ctx, m, sent) }) { // ends with the session, or as Send is bounded
		s.upstream.Await(m, sent)
	}
}

func (s *relayed) deliver(ctx context.Context, m *wire.Message, sent chan<- struct{}) {
	defer close(sent)
	if err := s.upstream.Send(ctx, m); err != nil {
		s.front.log.Warn("message of client was not delivered", "session", s.name, "error", err)
	}
}

var (
	_ service         = (*relayed)(nil)
	_ mcp.RelayClient = (*relayed)(nil)
	_ mcp.RelayedCall = (*relayedRequest)(nil)
)
