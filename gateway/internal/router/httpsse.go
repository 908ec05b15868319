package router

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpbridge/mcpbridge/gateway/internal/forward"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
	modernfront "github.com/mcpbridge/mcpbridge/modern/front"
)

// prefixHeader has the prefix that a proxy has removed from a path.
const prefixHeader = "X-Forwarded-Prefix"

// serveEvents opens the stream of a client on HTTP+SSE.
func (q *request) serveEvents() {
	s := q.s
	switch {
	case q.r.Method != http.MethodGet:
		notAllowed(q.w, http.MethodGet, "GET opens the event stream of HTTP+SSE, whose first event names the path for POST; "+s.streamable())
	case q.claim().revision.Era() == spec.Modern:
		downstream.WriteError(q.w, http.StatusBadRequest, wire.ID{}, s.needsStreamable(spec.Revision(q.r.Header.Get(spec.HeaderProtocolVersion))))
	default:
		q.sender.Arrival = arrivalBy("http", q.r, s.g) // of all that is posted
		var opened func(legacyfront.SessionID)         // for another replica
		if q.sender.Via != "" {
			w := q.w
			opened = func(id legacyfront.SessionID) { w.Header().Set(peer.Opening, string(id)) }
		}
		s.legacy.ServeEvents(q.w, q.r, messagesAt(q.r), q.sender, opened)
	}
}

// serveMessage receives a message that a client posts over HTTP+SSE. Responses go to the
// event stream.
func (q *request) serveMessage() {
	if q.r.Method != http.MethodPost {
		notAllowed(q.w, http.MethodPost, "clients of HTTP+SSE POST their messages here, after a GET of "+forward.Events.Path(q.s.name)+"; "+q.s.streamable())
		return
	}
	session := q.eventSession()
	if session == nil || !q.read() || !q.receive(session) {
		return
	}
	q.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	q.w.WriteHeader(http.StatusAccepted)
	_, _ = q.w.Write([]byte("Accepted")) // the client has gone if it fails
}

// eventSession returns the session of a POST. It returns nil if there is none, after it has
// written the error.
func (q *request) eventSession() *legacyfront.EventSession {
	id := q.r.URL.Query().Get(legacyfront.SessionParam)
	if id == "" {
		downstream.WriteError(q.w, http.StatusBadRequest, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"the query lacks %s; GET %s, and POST to the path in its first event", legacyfront.SessionParam, forward.Events.Path(q.s.name)))
		return nil
	}
	session := q.s.legacy.EventSession(id, q.sender.Principal)
	if session == nil {
		downstream.WriteError(q.w, http.StatusNotFound, wire.ID{}, wire.Errorf(spec.CodeSessionNotFound,
			"no such session: a session ends with its event stream; GET %s again", forward.Events.Path(q.s.name)))
	}
	return session
}

// receive passes the posted message, or batch, to the session. It reports false if it has
// written an error, because the message can't be read.
func (q *request) receive(session *legacyfront.EventSession) bool {
	m, err, from := q.message, q.err, q.sender.Identity
	var tooLong *mcp.TooLongError
	switch {
	case errors.As(err, &tooLong) && m.Kind() == wire.Request:
		session.Refuse(m.ID, tooLong.Wire())
	case err == nil && m.Method == spec.MethodInitialize && q.era == spec.Legacy && q.refusesInitialize():
		session.Refuse(m.ID, q.initializeRefused())
	case err == nil && q.era == spec.Legacy:
		q.noteInitialize()
		q.noteHeader(session)
		session.Serve(m, from)
	case err == nil && m.Kind() == wire.Request:
		session.Refuse(m.ID, q.s.needsStreamable(requested(m, q.r.Header)))
	case err == nil:
		q.s.g.opts.Metrics.Dropped(q.s.name, "client notification")
	case q.isBatch() && q.era == spec.Legacy:
		q.noteHeader(session)
		session.ServeBatch(q.body, from)
	case q.isBatch():
		refuseModernBatch(q.w)
		return false
	default:
		downstream.WriteError(q.w, http.StatusBadRequest, m.ID, parseError(err))
		return false
	}
	return true
}

// noteHeader counts a modern header in a session.
func (q *request) noteHeader(in *legacyfront.EventSession) {
	if q.claim().revision.Era() == spec.Modern && q.message.Method != spec.MethodInitialize {
		q.s.quirks.Met(quirks.HeaderRevision, in.Client())
	}
}

// needsStreamable returns the error for a modern request over HTTP+SSE. Clients that probe
// continue as legacy clients; the message tells people which endpoint to use.
func (s *server) needsStreamable(asked spec.Revision) *wire.Error {
	supported := spec.Revisions(spec.Legacy)
	e := *mcp.WireError(modernfront.Unsupported(asked, supported))
	e.Message = fmt.Sprintf("HTTP+SSE has sessions only, and not revision %s; initialize with one of %v, or %s", asked, supported, s.streamable())
	return &e
}

// requested returns the revision of a message: that of its envelope or its header.
func requested(m *wire.Message, h http.Header) spec.Revision {
	if version, ok := wire.GetString(wire.Get(m.Params, "_meta"), spec.MetaProtocolVersion); ok {
		return spec.Revision(version)
	}
	return spec.Revision(h.Get(spec.HeaderProtocolVersion))
}

func (s *server) streamable() string {
	return "use Streamable HTTP, at " + forward.Streamable.Path(s.name)
}

func notAllowed(w http.ResponseWriter, allowed, instead string) {
	w.Header().Set("Allow", allowed)
	downstream.WriteError(w, http.StatusMethodNotAllowed, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "%s", instead))
}

// messagesAt returns the path for POSTs that belongs to a GET of an event stream, as the
// client sees it: with the prefix that a surrounding mux, or a proxy, has removed. Clients
// resolve the path against the origin that they connected to.
func messagesAt(r *http.Request) string {
	name := strings.TrimPrefix(r.URL.Path, string(forward.Events))
	return prefixOf(r) + string(forward.Messages) + name
}

// prefixOf returns the prefix of the request's path that a mux or a proxy has removed. It is
// empty or begins with one slash.
func prefixOf(r *http.Request) string {
	prefix := r.Header.Get(prefixHeader)
	if u, err := url.ParseRequestURI(r.RequestURI); prefix == "" && err == nil && strings.HasSuffix(u.Path, r.URL.Path) {
		prefix = strings.TrimSuffix(u.Path, r.URL.Path)
	}
	prefix = strings.TrimRight(prefix, "/")
	if !strings.HasPrefix(prefix, "/") || strings.HasPrefix(prefix, "//") {
		return "" // "//host" would be another origin
	}
	return prefix
}
