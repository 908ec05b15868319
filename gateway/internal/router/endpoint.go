package router

import (
	"cmp"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A serveFunc serves a request of sender to a server.
type serveFunc func(s *server, w http.ResponseWriter, r *http.Request, sender mcp.Sender)

// route serves path/NAME for each server, and path if there is only one server.
func (g *Gateway) route(t *table, path string, serve serveFunc) {
	for name, s := range t.servers {
		t.mux.HandleFunc(path+"/"+name, func(w http.ResponseWriter, r *http.Request) { g.serveAdmitted(w, r, s, serve) })
	}
	g.elsewhere(t, path+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		downstream.WriteError(w, http.StatusNotFound, wire.ID{}, t.unknownServer(r.PathValue("name")))
	})
	if len(t.order) == 1 {
		only := t.servers[t.order[0]]
		t.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { g.serveAdmitted(w, r, only, serve) })
		return
	}
	g.elsewhere(t, path, func(w http.ResponseWriter, r *http.Request) {
		downstream.WriteError(w, http.StatusNotFound, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"this gateway has several servers: use %s/NAME; the servers are %v", path, t.order))
	})
}

// elsewhere serves a path that is no server's. Which servers there are is for those alone
// who may send requests.
func (g *Gateway) elsewhere(t *table, path string, serve http.HandlerFunc) {
	t.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		if _, ok := g.authenticate(w, r, &t.guard); ok {
			serve(w, r)
		}
	})
}

// serverAt returns the server of the URL of an endpoint in its usual form, /mcp/NAME. It
// returns nil for all others, which are left to the mux.
func (t *table) serverAt(u *url.URL) *server {
	name, ok := strings.CutPrefix(u.Path, "/mcp/")
	if !ok || u.RawPath != "" {
		return nil
	}
	return t.servers[name]
}

func serveNowhere(w http.ResponseWriter, r *http.Request, servers []string) {
	downstream.WriteError(w, http.StatusNotFound, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
		"nothing is served at %s; use /mcp/NAME; the servers are %v", r.URL.Path, servers))
}

// serveStreamable serves /mcp/NAME: it checks what both eras require of an HTTP request, except
// its origin, and reads its message.
func (s *server) serveStreamable(w http.ResponseWriter, r *http.Request, sender mcp.Sender) {
	if r.Method != http.MethodPost {
		if r.Method == http.MethodGet && transport.IsUpgrade(r) {
			s.g.serveSocket(w, r, s, sender)
			return
		}
		s.serveOther(w, r, sender)
		return
	}
	if !s.g.checkJSON(w, r) {
		return
	}
	in := mcp.NewReservation(s.memory, sender.Share)
	defer in.Release()
	body, ok := s.g.now().bodies.read(w, r, s.name, &in)
	if !ok || s.g.peers != nil && (forwarder{s}).forwardedRetry(w, r, body, sender) {
		return
	}
	s.route(w, r, body, sender)
}

// checkJSON answers 415 to a body whose Content-Type is not JSON.
func (g *Gateway) checkJSON(w http.ResponseWriter, r *http.Request) bool {
	if isJSON(r.Header.Get("Content-Type")) {
		return true
	}
	downstream.WriteError(w, http.StatusUnsupportedMediaType, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
		"Content-Type is %q, want application/json", r.Header.Get("Content-Type")))
	return false
}

func isJSON(contentType string) bool {
	if contentType == "application/json" { // the usual one needs no parsing
		return true
	}
	typ, _, err := mime.ParseMediaType(contentType)
	return err == nil && typ == "application/json"
}

// endChunked closes the connection after the response to a chunked request. The request may
// also have had a Content-Length, which net/http removes: a proxy that used it may have seen
// the next request at another place (request smuggling).
//
// Spec: RFC 9112, 6.3.
func endChunked(w http.ResponseWriter, r *http.Request) {
	if len(r.TransferEncoding) > 0 && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}

// route reads the message and passes it to the front of its era, or to the replica that serves
// its sender.
func (s *server) route(w http.ResponseWriter, r *http.Request, body []byte, sender mcp.Sender) {
	header := headerEra(r.Header)
	m := s.read(w, r, body, header, sender)
	if m == nil {
		return
	}
	modern := isModern(m, header)
	switch {
	case (placer{s}).placed(w, r, m, body, modern, sender):
	case modern:
		s.modern.ServeMessage(w, r, m, sender)
	default:
		s.refuse(w, r, m, header, sender)
	}
}

// parse parses a client's message, and checks the lengths of its parts. If err is not nil,
// the Message is that of [wire.Parse], without an id that is too long to be repeated.
func (s *server) parse(text []byte) (wire.Message, error) {
	opts := &s.g.now().opts
	m, err := wire.Parse(text, wire.Options{MaxDepth: opts.MaxDepth, UniqueParams: true})
	if m.ID.Len() > opts.Lengths.ID && err != nil {
		m.ID = wire.ID{}
	}
	if err == nil {
		err = s.check(&m)
	} else {
		s.reportDepth(err)
	}
	return m, err
}

// reportDepth counts and logs a message that nests too deeply.
func (s *server) reportDepth(err error) {
	if syntax := (*wire.SyntaxError)(nil); errors.As(err, &syntax) && syntax.TooDeep() {
		s.g.opts.Metrics.Limit(s.name, limits.Depth.Key)
		s.g.opts.Logger.Warn("message refused: it nests too deeply", "upstream", s.name, "limit", cmp.Or(s.g.now().opts.MaxDepth, wire.DefaultMaxDepth))
	}
}

// check returns an error if a part of a message is too long, after counting and logging it.
func (s *server) check(m *wire.Message) error {
	tooLong := s.g.now().opts.Lengths.Check(m)
	if tooLong == nil {
		return nil // and no typed nil in the interface
	}
	s.g.opts.Metrics.Limit(s.name, tooLong.Limit.Key)
	s.g.opts.Logger.Warn("message refused: a part is too long", "upstream", s.name, "part", tooLong.What, "length", tooLong.Len, "limit", tooLong.Max)
	return tooLong
}

// statusTooLong returns the status of the response to a message with a part that is too
// long. For a legacy request it is 200, because legacy clients take other statuses as a sign
// of another transport.
func (s *server) statusTooLong(m *wire.Message, header spec.Era) int {
	if m.Kind() == wire.Request && !isModern(m, header) {
		return http.StatusOK
	}
	return http.StatusBadRequest
}

// read parses the message of a request. It returns nil if it has written a response, because
// the body is invalid or a batch.
func (s *server) read(w http.ResponseWriter, r *http.Request, body []byte, header spec.Era, sender mcp.Sender) *wire.Message {
	m, err := s.parse(body)
	if err != nil {
		s.refuseText(w, r, body, header, sender, &m, err)
		return nil
	}
	return &m
}

// refuseText answers a body that is not a single valid message.
func (s *server) refuseText(w http.ResponseWriter, r *http.Request, body []byte, header spec.Era, sender mcp.Sender, m *wire.Message, err error) {
	var envelope *wire.EnvelopeError
	var tooLong *mcp.TooLongError
	switch {
	case errors.As(err, &tooLong):
		downstream.WriteError(w, s.statusTooLong(m, header), m.ID, tooLong.Wire())
	case errors.As(err, &envelope) && wire.IsArray(body):
		s.serveBatch(w, r, body, header, sender)
	default:
		downstream.WriteError(w, http.StatusBadRequest, m.ID, parseError(err))
	}
}

// refuse answers a legacy message with a modern header, and passes others to the legacy
// front.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, m *wire.Message, header spec.Era, sender mcp.Sender) {
	switch {
	case m.Kind() == wire.Response && header == spec.Modern:
		downstream.WriteError(w, http.StatusBadRequest, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"revision %s has no responses from clients; answer input_required by sending the request again with inputResponses", spec.Rev20260728))
	case m.Method == spec.MethodInitialize && header == spec.Modern:
		downstream.WriteError(w, http.StatusBadRequest, m.ID, wire.Errorf(spec.CodeHeaderMismatch,
			"initialize belongs to revisions before %s, the %s header says %q; leave the header out, or send %s",
			spec.Rev20260728, spec.HeaderProtocolVersion, r.Header.Get(spec.HeaderProtocolVersion), spec.MethodDiscover))
	default:
		s.legacy.ServePost(w, r, nil, m, sender)
	}
}

func parseError(err error) *wire.Error {
	if syntax := (*wire.SyntaxError)(nil); errors.As(err, &syntax) && syntax.TooDeep() {
		return wire.Errorf(spec.CodeParse, "%v; nest less, or %s", err, limits.Depth.Raise())
	} else if syntax != nil {
		return wire.Errorf(spec.CodeParse, "%v", err)
	}
	return wire.Errorf(spec.CodeInvalidRequest, "%v", err)
}

// serveBatch serves a batch, which only legacy revisions have.
func (s *server) serveBatch(w http.ResponseWriter, r *http.Request, body []byte, header spec.Era, sender mcp.Sender) {
	if hasModern(body, header) {
		refuseModernBatch(w)
		return
	}
	s.legacy.ServePost(w, r, body, nil, sender)
}

func refuseModernBatch(w http.ResponseWriter) {
	downstream.WriteError(w, http.StatusBadRequest, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
		"revision %s has no batches; send each message in a POST of its own", spec.Rev20260728))
}

// serveOther answers requests other than POST. GET and DELETE belong to legacy sessions.
func (s *server) serveOther(w http.ResponseWriter, r *http.Request, sender mcp.Sender) {
	isModern := headerEra(r.Header) == spec.Modern
	switch {
	case r.Method == http.MethodGet && !isModern:
		s.legacy.ServeGet(w, r, sender)
	case r.Method == http.MethodDelete && !isModern:
		s.legacy.ServeDelete(w, r, sender)
	default:
		allowed := http.MethodPost
		if !isModern {
			allowed = "GET, POST, DELETE"
		}
		w.Header().Set("Allow", allowed)
		downstream.WriteError(w, http.StatusMethodNotAllowed, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"%s is not served here; POST each message", r.Method))
	}
}

// unknownServer returns an error that lists the servers, so that people see a misspelling.
func (t *table) unknownServer(name string) *wire.Error {
	return wire.Errorf(spec.CodeInvalidRequest, "there is no server named %q; the servers are %s", name, cmp.Or(fmt.Sprint(t.order), "none"))
}
