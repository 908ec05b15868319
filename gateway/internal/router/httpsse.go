package router

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
	modernfront "github.com/mcpbridge/mcpbridge/modern/front"
)

// The paths of HTTP+SSE, each followed by /NAME where there are several servers.
//
// Spec: 2024-11-05, basic/transports, HTTP with SSE.
const (
	eventsPath   = "/sse"
	messagesPath = "/message"
)

// prefixHeader has the prefix that a proxy has removed from a path.
const prefixHeader = "X-Forwarded-Prefix"

// serveEvents opens the stream of a client on HTTP+SSE.
func (s *server) serveEvents(w http.ResponseWriter, r *http.Request, sender mcp.Sender) {
	switch {
	case r.Method != http.MethodGet:
		notAllowed(w, http.MethodGet, "GET opens the event stream of HTTP+SSE, whose first event names the path for POST; "+s.streamable())
	case headerEra(r.Header) == spec.Modern:
		downstream.WriteError(w, http.StatusBadRequest, wire.ID{}, s.needsStreamable(spec.Revision(r.Header.Get(spec.HeaderProtocolVersion))))
	case (placer{s}).placedEvents(w, r, sender):
	default:
		sender.Arrival = &trace.Arrival{Protocol: "http", Peer: r.RemoteAddr} // of all that is posted
		var opened func(legacyfront.SessionID)                                // for another replica
		if sender.Via != "" {
			opened = func(id legacyfront.SessionID) { w.Header().Set(peer.Opening, string(id)) }
		}
		s.legacy.ServeEvents(w, r, messagesAt(r), sender, opened)
	}
}

// serveMessages receives a message that a client posts over HTTP+SSE. Responses go to the
// event stream.
func (s *server) serveMessages(w http.ResponseWriter, r *http.Request, sender mcp.Sender) {
	if r.Method != http.MethodPost {
		notAllowed(w, http.MethodPost, "clients of HTTP+SSE POST their messages here, after a GET of "+eventsPath+"/"+s.name+"; "+s.streamable())
		return
	}
	session := s.eventSession(w, r, sender.Principal)
	if session == nil || !s.g.checkJSON(w, r) {
		return
	}
	in := mcp.NewReservation(s.memory, sender.Share)
	defer in.Release()
	body, ok := s.g.now().bodies.read(w, r, s.name, &in)
	if !ok || !s.receive(w, r, session, body, sender.Identity) {
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write([]byte("Accepted")) // the client has gone if it fails
}

// eventSession returns the session of a POST. It returns nil if there is none, after it has
// written the error.
func (s *server) eventSession(w http.ResponseWriter, r *http.Request, principal mcp.Principal) *legacyfront.EventSession {
	id := r.URL.Query().Get(legacyfront.SessionParam)
	if id == "" {
		downstream.WriteError(w, http.StatusBadRequest, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"the query lacks %s; GET %s/%s, and POST to the path in its first event", legacyfront.SessionParam, eventsPath, s.name))
		return nil
	}
	session := s.legacy.EventSession(id, principal)
	if session == nil {
		downstream.WriteError(w, http.StatusNotFound, wire.ID{}, wire.Errorf(spec.CodeSessionNotFound,
			"no such session: a session ends with its event stream; GET %s/%s again", eventsPath, s.name))
	}
	return session
}

// receive passes the posted message, or batch, to the session. It reports false if it has
// written an error, because the message can't be read.
func (s *server) receive(w http.ResponseWriter, r *http.Request, session *legacyfront.EventSession, body []byte, from *mcp.Identity) bool {
	m, err := s.parse(body)
	header := headerEra(r.Header)
	var tooLong *mcp.TooLongError
	switch envelope := (*wire.EnvelopeError)(nil); {
	case errors.As(err, &tooLong) && m.Kind() == wire.Request:
		session.Refuse(m.ID, tooLong.Wire())
	case err == nil && !isModern(&m, header):
		session.Serve(&m, from)
	case err == nil && m.Kind() == wire.Request:
		session.Refuse(m.ID, s.needsStreamable(requested(&m, r.Header)))
	case err == nil:
		s.g.opts.Metrics.Dropped(s.name, "client notification")
	case errors.As(err, &envelope) && wire.IsArray(body) && !hasModern(body, header):
		session.ServeBatch(body, from)
	case errors.As(err, &envelope) && wire.IsArray(body):
		refuseModernBatch(w)
		return false
	default:
		downstream.WriteError(w, http.StatusBadRequest, m.ID, parseError(err))
		return false
	}
	return true
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

func (s *server) streamable() string { return "use Streamable HTTP, at /mcp/" + s.name }

func notAllowed(w http.ResponseWriter, allowed, instead string) {
	w.Header().Set("Allow", allowed)
	downstream.WriteError(w, http.StatusMethodNotAllowed, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "%s", instead))
}

// messagesAt returns the path for POSTs that belongs to a GET of an event stream, as the
// client sees it: with the prefix that a surrounding mux, or a proxy, has removed. Clients
// resolve the path against the origin that they connected to.
func messagesAt(r *http.Request) string {
	name := strings.TrimPrefix(r.URL.Path, eventsPath)
	return prefixOf(r) + messagesPath + name
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
