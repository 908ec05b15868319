package front

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// ServePost serves the body of one POST: the message m, or a batch if m is nil.
// principal is whoever posted it. It returns when the answer was written or the
// client has left; what was asked goes on in the second case.
//
// Spec: 2025-11-25, basic/transports, Sending Messages to the Server.
func (f *Front) ServePost(w http.ResponseWriter, r *http.Request, body []byte, m *wire.Message, principal mcp.Principal) {
	if !accepts(r.Header, "application/json") || !accepts(r.Header, "text/event-stream") {
		writeError(w, http.StatusNotAcceptable, idOf(m), wire.Errorf(spec.CodeInvalidRequest,
			"the Accept header excludes a form that the answer may take; send Accept: application/json, text/event-stream"))
		return
	}
	if m != nil && m.Method == spec.MethodInitialize && m.Kind() == wire.Request {
		f.serveInitialize(w, r, m, principal)
		return
	}
	d := f.sessionOf(w, r, idOf(m), principal)
	if d == nil {
		return
	}
	defer f.sessions.leave(d)
	switch {
	case m == nil:
		d.servePostedBatch(w, r, body)
	case m.Kind() == wire.Request:
		d.servePosted(w, r, []*wire.Message{m}, false)
	case d.link != nil:
		d.passPosted(w, r, m)
	default:
		d.take(m)
		w.WriteHeader(http.StatusAccepted)
	}
}

func idOf(m *wire.Message) wire.ID {
	if m == nil || m.Kind() != wire.Request {
		return wire.ID{}
	}
	return m.ID
}

// take takes what has no answer.
func (d *downstream) take(m *wire.Message) {
	switch {
	case d.link != nil:
		d.pass(m)
	case m.Kind() == wire.Response:
		d.answered(m)
	default:
		d.hear(m)
	}
}

// servePosted serves requests that came together.
func (d *downstream) servePosted(w http.ResponseWriter, r *http.Request, requests []*wire.Message, batch bool) {
	d.f.sessions.again(d) // a call in flight is not idle, whatever becomes of its connection
	p := d.newPost(requests[0].ID, len(requests), batch)
	for _, m := range requests {
		d.begin(m, p)
	}
	p.serve(w, r)
}

// sessionOf returns the session that a request names, in use until leave, or nil if
// it answered why there is none.
func (f *Front) sessionOf(w http.ResponseWriter, r *http.Request, id wire.ID, principal mcp.Principal) *downstream {
	name := r.Header.Get(spec.HeaderSession)
	if name == "" {
		writeError(w, http.StatusBadRequest, id, wire.Errorf(spec.CodeInvalidRequest,
			"the %s header is missing; initialize first, and send the id that the answer's header has", spec.HeaderSession))
		return nil
	}
	d := f.sessions.use(DownstreamID(name), principal)
	if d == nil {
		writeError(w, http.StatusNotFound, id, wire.Errorf(spec.CodeSessionNotFound, "no such session; initialize anew"))
		return nil
	}
	if got := r.Header.Get(spec.HeaderProtocolVersion); got != "" && spec.Revision(got) != d.revision && d.revision != "" {
		f.sessions.leave(d)
		writeError(w, http.StatusBadRequest, id, wire.Errorf(spec.CodeInvalidRequest,
			"the %s header says %q, and this session is of %s; send that, or leave the header out", spec.HeaderProtocolVersion, got, d.revision))
		return nil
	}
	return d
}

// serveInitialize opens a session.
func (f *Front) serveInitialize(w http.ResponseWriter, r *http.Request, m *wire.Message, principal mcp.Principal) {
	id := f.newDownstreamID()
	d, answer, err := f.initialize(r.Context(), id, m, f.opts.Share(r, principal), nil)
	if d != nil {
		if err = f.sessions.add(d); err != nil {
			d.close()
		}
	}
	switch {
	case err != nil:
		hint(w, err)
		writeError(w, http.StatusOK, m.ID, mcp.WireError(err))
		return
	case d == nil: // refused upstream
		f.writePlain(w, answer)
		return
	}
	defer f.sessions.leave(d)
	w.Header().Set(spec.HeaderSession, string(id))
	f.writePlain(w, answer)
	if d.link != nil {
		d.follow(func() { f.sessions.end(d, endedUpstream) })
		d.link.Start()
	}
}

// ServeGet serves a GET: the stream of what the session is told unasked, or with
// Last-Event-ID the rest of the stream that the event was of.
//
// Spec: 2025-11-25, basic/transports, Listening for Messages from the Server.
func (f *Front) ServeGet(w http.ResponseWriter, r *http.Request, principal mcp.Principal) {
	if !accepts(r.Header, "text/event-stream") {
		writeError(w, http.StatusNotAcceptable, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"the Accept header excludes streams; send Accept: text/event-stream"))
		return
	}
	d := f.sessionOf(w, r, wire.ID{}, principal)
	if d == nil {
		return
	}
	defer f.sessions.leave(d)
	last := r.Header.Get(spec.HeaderLastEventID)
	st, from := d.streams.find(last)
	switch {
	case st != nil && !st.id.IsZero():
		d.writeStream(w, r, st, from)
		return
	case st == nil && d.link != nil:
		st, from = d.told, d.told.position()
	case st == nil && last != "":
		d.subs.cueAll()
	}
	if st == nil {
		st, from = d.streams.add(wire.ID{}), 0
	}
	d.writeChanges(w, r, st, from)
}

// writeChanges carries a GET stream on a connection.
func (d *downstream) writeChanges(w http.ResponseWriter, r *http.Request, st *eventStream, from uint64) {
	wr := d.newWriter(w)
	st.attach(wr, from)
	defer st.detach(wr)
	err := wr.open()
	if err == nil {
		err = wr.run(r.Context(), st, &d.subs)
	}
	switch {
	case stuck(err):
		d.f.sessions.end(d, endedStuck)
	case err == errNoChanges:
		reason, _ := d.subs.mail.Ended()
		why := endedClosed
		if reason != nil {
			why = reason.Error()
		}
		d.f.sessions.end(d, why)
	}
}

// ServeDelete ends a session.
//
// Spec: 2025-11-25, basic/transports, Session Management.
func (f *Front) ServeDelete(w http.ResponseWriter, r *http.Request, principal mcp.Principal) {
	d := f.sessionOf(w, r, wire.ID{}, principal)
	if d == nil {
		return
	}
	f.sessions.end(d, endedByClient)
	f.sessions.leave(d)
	w.WriteHeader(http.StatusNoContent)
}

// accepts reports whether an Accept header takes a media type; a missing one takes
// all.
func accepts(h http.Header, want string) bool {
	values := h.Values("Accept")
	if len(values) == 0 {
		return true
	}
	family, _, _ := strings.Cut(want, "/")
	for _, part := range strings.Split(strings.Join(values, ","), ",") {
		typ, params, err := mime.ParseMediaType(part)
		if err == nil && params["q"] != "0" && (typ == want || typ == "*/*" || typ == family+"/*") {
			return true
		}
	}
	return false
}

// hint says in a header whether what was refused may be taken in a moment.
func hint(w http.ResponseWriter, err error) {
	if mcp.MayTryLater(err) {
		w.Header().Set("Retry-After", retryAfter)
	}
}

func writeError(w http.ResponseWriter, status int, id wire.ID, e *wire.Error) {
	writeBody(w, status, wire.AppendError(nil, id, e))
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client has gone if it fails
}
