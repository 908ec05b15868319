package gateway

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern"
)

// route serves path/NAME for each server, and path where there is one.
func (g *Gateway) route(path string, serve func(*server, http.ResponseWriter, *http.Request)) {
	g.mux.HandleFunc(path+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		if s := g.servers[name]; s != nil {
			serve(s, w, r)
			return
		}
		modern.WriteError(w, http.StatusNotFound, wire.ID{}, g.unknownServer(name))
	})
	g.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		if len(g.order) == 1 {
			serve(g.servers[g.order[0]], w, r)
			return
		}
		modern.WriteError(w, http.StatusNotFound, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"which server? The endpoints are %s/NAME; there are: %v", path, g.order))
	})
}

func (g *Gateway) serveElsewhere(w http.ResponseWriter, r *http.Request) {
	modern.WriteError(w, http.StatusNotFound, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
		"nothing is served at %s; the endpoints are /mcp/NAME; there are: %v", r.URL.Path, g.order))
}

// serve checks what both eras demand of an HTTP request, its origin aside, and reads
// its message.
func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		if r.Method == http.MethodGet && transport.IsUpgrade(r) {
			s.g.serveSocket(w, r, s)
			return
		}
		s.serveOther(w, r)
		return
	}
	if !s.g.checkJSON(w, r) {
		return
	}
	body, ok := s.g.readBody(w, r, s)
	if !ok {
		return
	}
	s.route(w, r, body)
}

// checkJSON answers 415 to a body that is not said to be JSON.
func (g *Gateway) checkJSON(w http.ResponseWriter, r *http.Request) bool {
	if isJSON(r.Header.Get("Content-Type")) {
		return true
	}
	modern.WriteError(w, http.StatusUnsupportedMediaType, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
		"Content-Type is %q, want application/json", r.Header.Get("Content-Type")))
	return false
}

func isJSON(contentType string) bool {
	if contentType == "application/json" { // the usual, spared the parsing
		return true
	}
	typ, _, err := mime.ParseMediaType(contentType)
	return err == nil && typ == "application/json"
}

// boundBody sets the deadline by which the body has to be there. It is set before
// anything is refused, since net/http reads the rest of a body before it answers.
// Whoever has read all of the body takes the deadline back, or it would end
// responses that live longer.
func (g *Gateway) boundBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		// A writer without deadlines (a test's recorder) can't stall either.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(g.opts.BodyTimeout))
	}
}

// endChunked has the connection end with the answer to a chunked request: it may have
// had a Content-Length, too, which net/http takes away. Whoever is in front and went by
// that has taken something else for the next request.
//
// Spec: RFC 9112, 6.3.
func endChunked(w http.ResponseWriter, r *http.Request) {
	if len(r.TransferEncoding) > 0 && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}

func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request, s *server) ([]byte, bool) {
	var body []byte
	var err error
	if n := r.ContentLength; n >= 0 && n <= g.opts.MaxBody {
		body = make([]byte, n)
		_, err = io.ReadFull(r.Body, body)
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, g.opts.MaxBody))
	}
	if err == nil {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		return body, true
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		g.opts.Metrics.Limit(s.name, "body_timeout")
		g.opts.Logger.Warn("request refused: body too slow", "upstream", s.name, "downstream", r.RemoteAddr, "limit", g.opts.BodyTimeout)
		w.Header().Set("Connection", "close")
		modern.WriteError(w, http.StatusRequestTimeout, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"the request body did not arrive within %v; send it faster, or raise body_timeout", g.opts.BodyTimeout))
	case errors.As(err, &tooLarge):
		g.opts.Metrics.Limit(s.name, "body")
		g.opts.Logger.Warn("request refused: body too large", "upstream", s.name, "downstream", r.RemoteAddr, "limit", g.opts.MaxBody)
		modern.WriteError(w, http.StatusRequestEntityTooLarge, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"the request body is over %d bytes; send less, or raise limits.body", g.opts.MaxBody))
	default:
		modern.WriteError(w, http.StatusBadRequest, wire.ID{}, wire.Errorf(spec.CodeParse, "reading the request body: %v", err))
	}
	return nil, false
}

// route reads the message and decides its era: by its envelope, else by its
// header. initialize without an envelope is legacy by definition.
//
// Spec: 2026-07-28, basic/versioning, Backward Compatibility with
// Initialization-Based Versions.
func (s *server) route(w http.ResponseWriter, r *http.Request, body []byte) {
	header := headerEra(r.Header)
	m := s.read(w, r, body, header)
	if m == nil {
		return
	}
	if claims := claimsRevision(m.Meta); s.isModern(m, claims, header) {
		s.front.ServeMessage(w, r, m, s.g.authenticate(r))
	} else {
		s.refuse(w, r, m, claims, header)
	}
}

// read returns nil if it answered what can't be read, or what is not one message.
func (s *server) read(w http.ResponseWriter, r *http.Request, body []byte, header spec.Era) *wire.Message {
	m, err := wire.Parse(body, wire.Options{MaxDepth: s.g.opts.MaxDepth, UniqueParams: true})
	var envelope *wire.EnvelopeError
	switch {
	case err == nil:
		return &m
	case errors.As(err, &envelope) && wire.IsArray(body):
		s.serveBatch(w, r, body, header)
	default:
		modern.WriteError(w, http.StatusBadRequest, m.ID, parseError(err))
	}
	return nil
}

func (s *server) isModern(m *wire.Message, claims bool, header spec.Era) bool {
	if m.Kind() == wire.Response || m.Method == spec.MethodInitialize && !claims {
		return false
	}
	return claims || header == spec.Modern
}

// refuse answers what is not modern although its header is, and has the rest served
// as legacy.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, m *wire.Message, claims bool, header spec.Era) {
	switch {
	case m.Kind() == wire.Response && header == spec.Modern:
		modern.WriteError(w, http.StatusBadRequest, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"revision %s has no responses from clients; answer input_required by sending the request again with inputResponses", spec.Rev20260728))
	case m.Method == spec.MethodInitialize && !claims && header == spec.Modern:
		modern.WriteError(w, http.StatusBadRequest, m.ID, wire.Errorf(spec.CodeHeaderMismatch,
			"initialize belongs to revisions before %s, the %s header says %q; leave the header out, or send %s",
			spec.Rev20260728, spec.HeaderProtocolVersion, r.Header.Get(spec.HeaderProtocolVersion), spec.MethodDiscover))
	default:
		s.former.ServePost(w, r, nil, m, s.g.authenticate(r))
	}
}

// claimsRevision reports whether the _meta of params is a modern envelope, by its
// first sign.
func claimsRevision(meta []byte) bool {
	return wire.Get(meta, spec.MetaProtocolVersion) != nil
}

func headerEra(h http.Header) spec.Era {
	return spec.Revision(h.Get(spec.HeaderProtocolVersion)).Era()
}

func parseError(err error) *wire.Error {
	if syntax := (*wire.SyntaxError)(nil); errors.As(err, &syntax) {
		return wire.Errorf(spec.CodeParse, "%v", err)
	}
	return wire.Errorf(spec.CodeInvalidRequest, "%v", err)
}

// serveBatch serves a batch, which only a legacy revision has.
func (s *server) serveBatch(w http.ResponseWriter, r *http.Request, body []byte, header spec.Era) {
	if hasModern(body, header) {
		refuseModernBatch(w)
		return
	}
	s.former.ServePost(w, r, body, nil, s.g.authenticate(r))
}

// hasModern reports whether the header of a batch is modern, or one of its members.
func hasModern(batch []byte, header spec.Era) bool {
	isModern := header == spec.Modern
	for m := range wire.Elements(batch) {
		isModern = isModern || claimsRevision(wire.Get(wire.Get(m, "params"), "_meta"))
	}
	return isModern
}

func refuseModernBatch(w http.ResponseWriter) {
	modern.WriteError(w, http.StatusBadRequest, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
		"revision %s has no batches; send each message in a POST of its own", spec.Rev20260728))
}

// serveOther answers what is not POST. GET and DELETE belong to legacy sessions.
func (s *server) serveOther(w http.ResponseWriter, r *http.Request) {
	isModern := headerEra(r.Header) == spec.Modern
	switch {
	case r.Method == http.MethodGet && !isModern:
		s.former.ServeGet(w, r, s.g.authenticate(r))
	case r.Method == http.MethodDelete && !isModern:
		s.former.ServeDelete(w, r, s.g.authenticate(r))
	default:
		allowed := http.MethodPost
		if !isModern {
			allowed = "GET, POST, DELETE"
		}
		w.Header().Set("Allow", allowed)
		modern.WriteError(w, http.StatusMethodNotAllowed, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"%s is not served here; POST each message", r.Method))
	}
}
