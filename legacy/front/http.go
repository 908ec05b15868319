package front

import (
	"cmp"
	"context"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/eventstream"
)

// ServePost serves the body of one POST: the message m, or a batch if m is nil. sender has
// posted it. It returns when the response was written or the client has left; in the
// second case the requests continue.
//
// Spec: 2025-11-25, basic/transports, Sending Messages to the Server.
func (f *Front) ServePost(w http.ResponseWriter, r *http.Request, body []byte, m *wire.Message, sender mcp.Sender) {
	form, ok := f.formOf(r.Header)
	if !ok {
		downstream.WriteError(w, http.StatusNotAcceptable, idOf(m), wire.Errorf(spec.CodeInvalidRequest,
			"the Accept header excludes a form that the response may have; send Accept: application/json, text/event-stream"))
		return
	}
	if m != nil && m.Method == spec.MethodInitialize && m.Kind() == wire.Request {
		f.noteForm(form, wire.Get(m.Params, "clientInfo"))
		f.serveInitialize(w, r, m, sender, form)
		return
	}
	s := f.sessionOf(w, r, idOf(m), sender)
	if s == nil {
		return
	}
	defer f.sessions.release(s)
	f.noteForm(form, s.info)
	if m != nil {
		f.tolerate(m, s.info)
	}
	switch {
	case m == nil:
		s.servePostBatch(w, r, body, originOf(sender), form)
	case m.Kind() == wire.Request:
		s.servePost(w, r, m, originOf(sender), form)
	default:
		s.post(w, r, m)
	}
}

func idOf(m *wire.Message) wire.ID {
	if m == nil || m.Kind() != wire.Request {
		return wire.ID{}
	}
	return m.ID
}

// servePost serves the request of one POST.
func (s *session) servePost(w http.ResponseWriter, r *http.Request, m *wire.Message, from origin, f form) {
	s.front.sessions.retain(s) // a session with a call in flight is not idle, even if the connection breaks
	p := s.newHTTPReply(m.ID, 1, false, f)
	s.request(m, from, p)
	from.arrival.Replied(p.serve(w, r), w.Header())
}

// sessionOf returns the session that a request names; the caller must release it. It
// returns nil if it has written an error.
func (f *Front) sessionOf(w http.ResponseWriter, r *http.Request, id wire.ID, sender mcp.Sender) *session {
	name := r.Header.Get(spec.HeaderSession)
	if name == "" {
		downstream.WriteError(w, http.StatusBadRequest, id, wire.Errorf(spec.CodeInvalidRequest,
			"the %s header is missing; initialize first, and send the id in the header of its response", spec.HeaderSession))
		return nil
	}
	s := f.sessions.use(SessionID(name), sender.Principal)
	if s == nil {
		downstream.WriteError(w, http.StatusNotFound, id, wire.Errorf(spec.CodeSessionNotFound, "no such session; initialize anew"))
		return nil
	}
	got := spec.Revision(r.Header.Get(spec.HeaderProtocolVersion))
	switch other := got != "" && got != s.revision && s.revision != ""; {
	case other && got.Known() && f.opts.Quirks.Tolerates(quirks.HeaderRevision):
		f.opts.Quirks.Met(quirks.HeaderRevision, mcp.ClientName(s.info))
	case other:
		f.sessions.release(s)
		downstream.WriteError(w, http.StatusBadRequest, id, wire.Errorf(spec.CodeInvalidRequest,
			"the %s header is %q, and this session has revision %s; send that, or omit the header", spec.HeaderProtocolVersion, got, s.revision))
		return nil
	}
	return s
}

// serveInitialize opens a session.
func (f *Front) serveInitialize(w http.ResponseWriter, r *http.Request, m *wire.Message, sender mcp.Sender, form form) {
	id := f.newSessionID()
	s, answer, err := f.initialize(r.Context(), id, m, sender, nil)
	if s != nil {
		if err = f.sessions.add(s); err != nil {
			s.close()
		}
	}
	switch {
	case err != nil:
		downstream.WriteError(w, setRetryAfter(w, err, http.StatusOK), m.ID, mcp.WireError(err))
		return
	case s == nil: // refused upstream
		f.write(w, http.StatusOK, answer, form)
		return
	}
	defer f.sessions.release(s)
	w.Header().Set(spec.HeaderSession, string(id))
	f.write(w, http.StatusOK, answer, form)
	sender.Arrival.Replied(http.StatusOK, w.Header())
	s.start(func() { f.sessions.end(s, endedUpstream) })
}

// ServeGet serves a GET: the stream for messages outside of calls or, with Last-Event-ID,
// the rest of the stream of that event.
//
// Spec: 2025-11-25, basic/transports, Listening for Messages from the Server.
func (f *Front) ServeGet(w http.ResponseWriter, r *http.Request, sender mcp.Sender) {
	if !downstream.Accepts(r.Header, "text/event-stream") {
		downstream.WriteError(w, http.StatusNotAcceptable, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"the Accept header excludes streams; send Accept: text/event-stream"))
		return
	}
	s := f.sessionOf(w, r, wire.ID{}, sender)
	if s == nil {
		return
	}
	last := r.Header.Get(spec.HeaderLastEventID)
	st, from := s.streams.Find(last)
	if st != nil && st.IsCall() {
		s.serveStream(w, r, st, from, sender.Identity)
		f.sessions.release(s)
		return
	}
	f.sessions.read(s)
	f.opts.Streams.ServeTurns(w, r, f.opts.WriteTimeout, func(ctx context.Context, res *downstream.Response) downstream.Turn {
		sw := s.openGet(res, st, from, last != "")
		_ = res.Comment() // some clients wait for the headers; if it fails, ctx ends
		forget := sw.Until(sender.Identity)
		return func() bool {
			over, err := sw.Turn(ctx)
			if over {
				s.closeGet(ctx, sw, err)
				forget()
			}
			return over
		}
	})
}

// openGet begins a GET stream: an earlier one after an event, or a new one if st is nil.
// lost says that the client had another one that is no longer stored. Of what it missed, changes are
// told again.
func (s *session) openGet(res *downstream.Response, st *eventstream.Stream, from uint64, lost bool) *eventstream.Writer {
	fresh := st == nil
	if fresh {
		st, from = s.listen()
	}
	w := st.Attach(res, from, s.subscriptions.changes())
	if (fresh && lost || w.Missed()) && !s.hasOwnUpstream() {
		s.subscriptions.markAll() // now that no other stream takes them
	}
	return w
}

// closeGet ends a GET stream for a reason, and releases the session.
func (s *session) closeGet(ctx context.Context, w *eventstream.Writer, err error) {
	w.Close(err)
	downstream.ReportStray(ctx, s.front.opts.Metrics, s.front.opts.Name, s.front.log, "session", s.name)
	if err == eventstream.ErrNoChanges && !s.front.isEnding() {
		s.front.sessions.end(s, s.subscriptions.endReason())
	}
	s.front.sessions.releaseReader(s)
}

// ServeDelete ends a session.
//
// Spec: 2025-11-25, basic/transports, Session Management.
func (f *Front) ServeDelete(w http.ResponseWriter, r *http.Request, sender mcp.Sender) {
	s := f.sessionOf(w, r, wire.ID{}, sender)
	if s == nil {
		return
	}
	f.sessions.end(s, endedByClient)
	f.sessions.release(s)
	w.WriteHeader(http.StatusNoContent)
}

// A form is that of the response to a POST, as far as its client accepts only one.
type form uint8

const (
	anyForm form = iota
	onlyJSON
	onlyStream
)

// formOf returns the form that an Accept header leaves. It reports false if the request is
// refused: neither form is accepted, or not both, and that is not tolerated.
func (f *Front) formOf(h http.Header) (form, bool) {
	json, stream := downstream.Accepts(h, spec.TypeJSON), downstream.Accepts(h, spec.TypeStream)
	switch {
	case json && stream:
		return anyForm, true
	case !json && !stream || !f.opts.Quirks.Tolerates(quirks.Accept):
		return anyForm, false
	case json:
		return onlyJSON, true
	}
	return onlyStream, true
}

// tolerate counts what a message has that it should not have, although it is served: an
// envelope, which counts for nothing in this era, or params that are null, which it takes out.
func (f *Front) tolerate(m *wire.Message, info []byte) {
	if wire.Get(m.Meta, spec.MetaProtocolVersion) != nil {
		f.opts.Quirks.Met(quirks.StrayEnvelope, mcp.ClientName(info))
	}
	if m.NullParams {
		m.Text = wire.AppendEdited(nil, m.Text, wire.Edit{Name: "params"}) // for a server that is stricter
		f.opts.Quirks.Met(quirks.NullParams, mcp.ClientName(info))
	}
}

// noteForm counts a client that accepts only one form.
func (f *Front) noteForm(form form, info []byte) {
	if form != anyForm {
		f.opts.Quirks.Met(quirks.Accept, mcp.ClientName(info))
	}
}

// setRetryAfter sets Retry-After if the same request may succeed later.
func setRetryAfter(w http.ResponseWriter, err error, status int) int {
	h := mcp.HintOf(err)
	h.SetHeader(w.Header())
	return cmp.Or(h.Status, status)
}
