package router

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpbridge/mcpbridge/gateway/internal/forward"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// route serves path/NAME for each server, and path if there is only one server.
func (g *Gateway) route(t *table, at forward.Endpoint) {
	for name, s := range t.servers {
		t.mux.HandleFunc(at.Path(name), func(w http.ResponseWriter, r *http.Request) { g.serveAdmitted(w, r, s, at) })
	}
	t.mux.HandleFunc(at.Path("{name}"), func(w http.ResponseWriter, r *http.Request) { g.serveAbsent(w, r, t, at) })
	if len(t.order) == 1 {
		only := t.servers[t.order[0]]
		t.mux.HandleFunc(string(at), func(w http.ResponseWriter, r *http.Request) { g.serveAdmitted(w, r, only, at) })
		return
	}
	g.elsewhere(t, string(at), func(w http.ResponseWriter, r *http.Request) {
		downstream.WriteError(w, http.StatusNotFound, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
			"this gateway has several servers: use %s/NAME; the servers are %v", at, t.order))
	})
}

// serveAbsent answers a request to a server that is not in the table: if another replica has it, that
// one does.
func (g *Gateway) serveAbsent(w http.ResponseWriter, r *http.Request, t *table, at forward.Endpoint) {
	name := r.PathValue("name")
	if g.forward != nil && g.passAbsent(w, r, at, name) {
		return
	}
	if _, ok := g.authenticate(w, r, &t.guard); ok {
		downstream.WriteError(w, http.StatusNotFound, wire.ID{}, t.unknownServer(name))
	}
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

// parse parses a client's message, and checks the lengths of its parts. If err is not nil,
// the Message is that of [wire.Parse], without an id that is too long to be repeated.
func (s *server) parse(text []byte) (wire.Message, error) {
	opts := &s.g.now().opts
	m, err := wire.Parse(text, wire.Options{MaxDepth: opts.MaxDepth, UniqueParams: true, NullParams: s.quirks.Tolerates(quirks.NullParams)})
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
		s.limits.Hit(limits.Depth.Key, "message refused: it nests too deeply", "limit", cmp.Or(s.g.now().opts.MaxDepth, wire.DefaultMaxDepth))
	}
}

// check returns an error if a part of a message is too long, after counting and logging it.
func (s *server) check(m *wire.Message) error {
	tooLong := s.g.now().opts.Lengths.Check(m)
	if tooLong == nil {
		return nil // and no typed nil in the interface
	}
	s.limits.Hit(tooLong.Limit.Key, "message refused: a part is too long", "part", tooLong.What, "length", tooLong.Len, "limit", tooLong.Max)
	return tooLong
}

func parseError(err error) *wire.Error {
	if syntax := (*wire.SyntaxError)(nil); errors.As(err, &syntax) && syntax.TooDeep() {
		return wire.Errorf(spec.CodeParse, "%v; nest less, or %s", err, limits.Depth.Raise())
	} else if syntax != nil {
		return wire.Errorf(spec.CodeParse, "%v", err)
	}
	return wire.Errorf(spec.CodeInvalidRequest, "%v", err)
}

func refuseModernBatch(w http.ResponseWriter) {
	downstream.WriteError(w, http.StatusBadRequest, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
		"revision %s has no batches; send each message in a POST of its own", spec.Rev20260728))
}

// unknownServer returns an error that lists the servers, so that people see a misspelling.
func (t *table) unknownServer(name string) *wire.Error {
	return wire.Errorf(spec.CodeInvalidRequest, "there is no server named %q; the servers are %s", name, cmp.Or(fmt.Sprint(t.order), "none"))
}
