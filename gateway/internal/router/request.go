package router

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/mcpbridge/mcpbridge/gateway/internal/forward"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A request is an HTTP request to a server, whose sender may send it.
type request struct {
	s      *server
	w      http.ResponseWriter
	r      *http.Request
	at     forward.Endpoint
	sender mcp.Sender

	// Of a POST: what was read of it.
	memory  mcp.Reservation // for the body
	body    []byte
	message *wire.Message // with what is known of it after err
	err     error         // why the body is not a single valid message
	era     spec.Era      // of the message, or batch
	isRead  bool

	room *mcp.Reservation // of a WebSocket, which has a place, too; nil until it is taken
}

// answer has a request answered: by the replica that it belongs to, or here. moved is what its
// envelope says, if it has one.
func (s *server) answer(q request, moved bool) {
	if s.together.forward == nil {
		defer q.end()
		q.serve()
		return
	}
	asked := q // of its own, since only what is asked leaves the stack
	defer asked.end()
	release, answered := s.together.forward.Elsewhere(asked.forward(moved))
	if asked.r.Method == http.MethodGet { // it keeps its session here until its stream is open
		asked.r, release = downstream.Placed(asked.r, release)
	}
	defer release()
	if !answered {
		asked.serve()
	}
}

// forward returns the request as one that another replica may answer.
func (q *request) forward(moved bool) *forward.Request {
	out := &forward.Request{
		W: q.w, R: q.r, At: q.at, Sender: q.sender, Moved: moved, Claimed: q.s.eraOfClaim(q.claim()),
		Read: q.readEra, Peek: q.peekEra, Room: q.lendRoom,
	}
	if q.at == forward.Events && q.sender.Via == "" {
		out.R = withPrefix(q.r)
	}
	return out
}

// serve has the request served here.
func (q *request) serve() {
	switch q.at {
	case forward.Events:
		q.serveEvents()
	case forward.Messages:
		q.serveMessage()
	default:
		q.serveStreamable()
	}
}

// serveStreamable serves /mcp/NAME: it checks what both eras require of an HTTP request, except
// its origin, and reads its message.
func (q *request) serveStreamable() {
	switch {
	case q.r.Method == http.MethodPost:
		q.servePost()
	case q.r.Method == http.MethodGet && transport.IsUpgrade(q.r):
		q.serveSocket()
	default:
		q.serveOther()
	}
}

// servePost passes the message of a POST to the front of its era.
func (q *request) servePost() {
	switch {
	case !q.read():
	case q.err != nil:
		q.refuseText()
	case q.era == spec.Modern:
		if m := q.message; m.NullParams && m.Kind() == wire.Notification { // a request lacks its envelope
			q.s.quirks.Met(quirks.NullParams, "")
		}
		q.s.modern.ServeMessage(q.w, q.r, q.message, q.sender)
	default:
		q.serveLegacy()
	}
}

// read reads and parses the body of a POST, once. It reports false if it has refused the
// request, because there is none.
func (q *request) read() bool {
	if q.isRead {
		return true
	}
	if !isJSON(q.r.Header.Get("Content-Type")) {
		downstream.WriteError(q.w, http.StatusUnsupportedMediaType, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"Content-Type is %q, want application/json", q.r.Header.Get("Content-Type")))
		return false
	}
	q.memory = mcp.NewReservation(q.s.memory, q.sender.Share)
	body, ok := q.s.g.now().bodies.Read(q.w, q.r, q.s.limits, &q.memory)
	if !ok {
		return false
	}
	m, err := q.s.parse(body)
	q.body, q.message, q.err, q.isRead = body, &m, err, true
	q.decide()
	return true
}

// claim returns what comes beside the message and tells of its era. A post of HTTP+SSE names its
// session in the path.
func (q *request) claim() claim {
	c := claimOf(q.r.Header)
	c.session = c.session || q.at == forward.Messages
	return c
}

// decide decides the era of what was read.
func (q *request) decide() {
	if q.err != nil && q.isBatch() {
		q.era = q.s.eraOfBatch(q.body, q.claim())
		return
	}
	q.era = q.s.eraOf(q.message, q.claim())
}

// isBatch reports whether the body, which is not a single message, is a batch.
func (q *request) isBatch() bool {
	envelope := (*wire.EnvelopeError)(nil)
	return errors.As(q.err, &envelope) && wire.IsArray(q.body)
}

// readEra reads the message of a POST, which is nil if there is no single one, and its era.
func (q *request) readEra() (m *wire.Message, era spec.Era, ok bool) {
	switch {
	case !q.read():
		return nil, spec.Unknown, false
	case q.err != nil:
		return nil, spec.Unknown, true
	}
	return q.message, q.era, true
}

// peekEra returns the era of the message, or batch, of a POST that may be forwarded all the same:
// its body can be read again.
func (q *request) peekEra() (era spec.Era, ok bool) {
	if !q.read() {
		return spec.Unknown, false
	}
	q.r.Body = io.NopCloser(bytes.NewReader(q.body))
	return q.era, true
}

// end gives back the memory of the body.
func (q *request) end() { q.memory.Release() }

func isJSON(contentType string) bool {
	if contentType == "application/json" { // the usual one needs no parsing
		return true
	}
	typ, _, err := mime.ParseMediaType(contentType)
	return err == nil && typ == "application/json"
}

// statusTooLong returns the status of the response to a message with a part that is too
// long. For a legacy request it is 200, because legacy clients take other statuses as a sign
// of another transport.
func (q *request) statusTooLong() int {
	if q.message.Kind() == wire.Request && q.era == spec.Legacy {
		return http.StatusOK
	}
	return http.StatusBadRequest
}

// refuseText answers a body that is not a single valid message.
func (q *request) refuseText() {
	var tooLong *mcp.TooLongError
	switch {
	case errors.As(q.err, &tooLong):
		downstream.WriteError(q.w, q.statusTooLong(), q.message.ID, tooLong.Wire())
	case q.isBatch():
		q.serveBatch()
	default:
		downstream.WriteError(q.w, http.StatusBadRequest, q.message.ID, parseError(q.err))
	}
}

// serveLegacy passes a message to the legacy front, and answers one with a modern header.
func (q *request) serveLegacy() {
	m, beside := q.message, q.claim()
	switch {
	case m.Kind() == wire.Response && q.s.eraOfClaim(beside) == spec.Modern:
		downstream.WriteError(q.w, http.StatusBadRequest, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"revision %s has no responses from clients; answer input_required by sending the request again with inputResponses", spec.Rev20260728))
	case m.Method == spec.MethodInitialize && q.refusesInitialize():
		downstream.WriteError(q.w, http.StatusBadRequest, m.ID, q.initializeRefused())
	default:
		q.noteInitialize()
		q.s.legacy.ServePost(q.w, q.r, nil, m, q.sender)
	}
}

// refusesInitialize reports whether initialize is refused, because the header names a modern
// revision.
func (q *request) refusesInitialize() bool {
	revision := q.claim().revision
	return revision.Era() == spec.Modern && !(revision.Known() && q.s.quirks.Tolerates(quirks.InitializeUnderModernHeader))
}

// noteInitialize counts initialize under a modern header that is served.
func (q *request) noteInitialize() {
	if m := q.message; m.Method == spec.MethodInitialize && q.claim().revision.Era() == spec.Modern {
		q.s.quirks.Met(quirks.InitializeUnderModernHeader, mcp.ClientName(wire.Get(m.Params, "clientInfo")))
	}
}

// initializeRefused is the error of initialize under a modern header.
func (q *request) initializeRefused() *wire.Error {
	return wire.Errorf(spec.CodeHeaderMismatch, "initialize belongs to revisions before %s, the %s header says %q; leave the header out, or send %s",
		spec.Rev20260728, spec.HeaderProtocolVersion, q.claim().revision, spec.MethodDiscover)
}

// serveBatch serves a batch, which only legacy revisions have.
func (q *request) serveBatch() {
	if q.era == spec.Modern {
		refuseModernBatch(q.w)
		return
	}
	q.s.legacy.ServePost(q.w, q.r, q.body, nil, q.sender)
}

// serveOther answers requests other than POST. GET and DELETE belong to legacy sessions.
func (q *request) serveOther() {
	isModern := q.s.eraOfClaim(q.claim()) == spec.Modern
	switch {
	case q.r.Method == http.MethodGet && !isModern:
		q.s.legacy.ServeGet(q.w, q.r, q.sender)
	case q.r.Method == http.MethodDelete && !isModern:
		q.s.legacy.ServeDelete(q.w, q.r, q.sender)
	default:
		allowed := http.MethodPost
		if !isModern {
			allowed = "GET, POST, DELETE"
		}
		q.w.Header().Set("Allow", allowed)
		downstream.WriteError(q.w, http.StatusMethodNotAllowed, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"%s is not served here; POST each message", q.r.Method))
	}
}
