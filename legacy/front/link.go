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

// linkUp opens the client's own session upstream, if that is of the same era. answer is
// what the server says to initialize; s.link is nil if it refused.
func (f *Front) linkUp(ctx context.Context, s *session, req *mcp.Request, m *wire.Message) (answer []byte, err error) {
	if f.opts.Linker == nil {
		return nil, nil
	}
	if s.conn == nil {
		s.unsolicited = s.streams.keep() // before anything is heard
	}
	err = f.whenStarted(ctx, req, func(ctx context.Context) error {
		s.link, answer, err = f.opts.Linker.Link(ctx, req, m, s)
		for errors.Is(err, mcp.ErrFull) && f.sessions.makeRoom(ctx, s.share) {
			s.link, answer, err = f.opts.Linker.Link(ctx, req, m, s)
		}
		return err
	})
	if err != nil || s.link == nil {
		s.streams.forget(s.unsolicited)
		s.unsolicited = nil
		return answer, err
	}
	version, _ := wire.GetString(wire.Get(answer, "result"), "protocolVersion")
	s.revision = spec.Revision(version)
	return answer, nil
}

// Hear implements [mcp.Hearer].
func (s *session) Hear(ctx context.Context, text []byte, anyway bool) error {
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

// Idle implements [mcp.Hearer]. On a connection the client is there as long as that
// is.
func (s *session) Idle() bool { return s.conn == nil && s.front.sessions.isIdle(s) }

// newestCall returns the call in flight whose client is likeliest to hear of it: the
// last one that a connection waits for, else the last that a client may come back to. It
// returns nil if there is neither.
func (s *session) newestCall() (newest *request) {
	best := unreachable
	for _, c := range s.calls.All() { // oldest first
		p, ok := c.w.(*httpReply)
		if !ok {
			continue // a connection's, which is not asked for
		}
		if at := p.reachable(); at > unreachable && at >= best {
			newest, best = c, at
		}
	}
	return newest
}

// A reach says whether what precedes the answer to a POST reaches the client.
type reach uint8

const (
	unreachable reach = iota // its connection has gone before there was a stream
	onReturn                 // if the client comes back
	connected
)

func (p *httpReply) reachable() reach {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stream == nil && p.decided:
		return unreachable
	case p.stream == nil || p.stream.isRead():
		return connected
	}
	return onReturn
}

// follow ends the session with its link: lost is called unless the session ends first.
func (s *session) follow(lost func()) {
	s.spawn(func(ctx context.Context) { // ends with the session, or the link
		select {
		case <-s.link.Done():
			lost()
		case <-ctx.Done():
		}
	})
}

// serveLinked passes a request on. Its answer goes to w.
func (s *session) serveLinked(m *wire.Message, w replyWriter) {
	r := &request{Call: downstream.Call{ID: m.ID, Cancel: func(error) {}}, session: s, w: w}
	if err := s.admit(r, m); err != nil {
		r.refuse(err)
		return
	}
	s.link.Call(m, r)
}

// Message implements [mcp.Outcome].
func (r *request) Message(ctx context.Context, text []byte) error { return r.w.send(ctx, text) }

// Answer implements [mcp.Outcome].
func (r *request) Answer(text []byte, _ error) {
	defer r.session.calls.Leave(r)
	r.session.free(r) // the client may use the id again at once
	r.respond(text)
}

// Lost implements [mcp.Outcome].
func (r *request) Lost(err error) {
	defer r.session.calls.Leave(r)
	r.session.free(r)
	p, isPost := r.w.(*httpReply)
	switch {
	case errors.Is(err, mcp.ErrCancelled):
		r.w.noReply()
	case !errors.Is(err, mcp.ErrLinkEnded):
		r.w.reply(r.failure(err))
	case isPost:
		p.sessionEnded(sessionGone(r.ID, err))
	default:
		r.w.reply(response{msg: sessionGone(r.ID, err)})
	}
}

// refuse answers a request that was not entered, which may have met its session's end.
func (r *request) refuse(err error) {
	res := r.failure(err)
	if p, ok := r.w.(*httpReply); ok && mcp.WireError(err).Code == spec.CodeSessionNotFound {
		p.sessionEnded(res.msg)
		return
	}
	r.w.reply(res)
}

// sessionGone is what a client is told that has to initialize anew.
func sessionGone(id wire.ID, err error) []byte {
	return wire.AppendError(nil, id, wire.Errorf(spec.CodeSessionNotFound, "%v; initialize anew", err))
}

// sessionEnded is reply for a call whose session has ended upstream: its status is the only
// signal that clients heed.
func (p *httpReply) sessionEnded(msg []byte) {
	p.mu.Lock()
	p.lost = true
	p.mu.Unlock()
	p.settle(&response{msg: msg})
}

// status is that of an answer that is no stream.
func (p *httpReply) status() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost && !p.batch {
		return http.StatusNotFound
	}
	return http.StatusOK
}

// forwardPost passes on what has no answer.
func (s *session) forwardPost(w http.ResponseWriter, r *http.Request, m *wire.Message) {
	switch err := s.link.Send(context.WithoutCancel(r.Context()), m); { // it is passed on though its sender leaves
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case errors.Is(err, mcp.ErrLinkEnded):
		s.front.sessions.end(s, endedUpstream)
		downstream.WriteError(w, http.StatusNotFound, wire.ID{}, wire.Errorf(spec.CodeSessionNotFound, "%v; initialize anew", err))
	default:
		s.front.log.Warn("message of client was not delivered", "session", s.name, "error", err)
		downstream.WriteError(w, http.StatusBadGateway, wire.ID{}, mcp.WireError(err))
	}
}

// forward passes on what has no answer, where nobody could be told of a failure. The
// session's end is not held up by a server that does not take it.
func (s *session) forward(m *wire.Message) {
	sent := make(chan struct{})
	if s.spawn(func(ctx context.Context) { s.deliver(ctx, m, sent) }) { // ends with the session, or as Send is bounded
		s.link.Await(m, sent)
	}
}

func (s *session) deliver(ctx context.Context, m *wire.Message, sent chan<- struct{}) {
	defer close(sent)
	if err := s.link.Send(ctx, m); err != nil {
		s.front.log.Warn("message of client was not delivered", "session", s.name, "error", err)
	}
}
