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
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// route serves path/NAME for each server, and path for the one that needs no name.
func (g *Gateway) route(t *table, at forward.Endpoint) {
	for name, s := range t.servers {
		t.handle(at.Path(name), func(w http.ResponseWriter, r *http.Request) { g.serveAdmitted(w, r, s, at) })
	}
	t.handle(at.Path("{name}"), func(w http.ResponseWriter, r *http.Request) { g.serveAbsent(w, r, t, at) })
	if s := t.unnamed(); s != nil {
		t.handle(string(at), func(w http.ResponseWriter, r *http.Request) { g.serveAdmitted(w, r, s, at) })
		return
	}
	t.handle(string(at), func(w http.ResponseWriter, r *http.Request) {
		if t.tells(w, r) {
			downstream.WriteError(w, http.StatusNotFound, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
				"this gateway has several servers: use %s/NAME%s", at, t.listed()))
		}
	})
}

// handle serves a path, with and without a slash at its end: people write both, and some
// clients add one.
func (t *table) handle(path string, serve http.HandlerFunc) {
	t.mux.HandleFunc(path, serve)
	t.mux.HandleFunc(path+"/{$}", serve)
}

// serveAbsent answers a request to a server that is not in the table: if another replica has it, that
// one does.
func (g *Gateway) serveAbsent(w http.ResponseWriter, r *http.Request, t *table, at forward.Endpoint) {
	name := r.PathValue("name")
	if g.forward != nil && g.passAbsent(w, r, at, name) {
		return
	}
	if t.tells(w, r) {
		downstream.WriteError(w, http.StatusNotFound, wire.ID{}, t.unknownServer(name))
	}
}

// tells reports whether the sender of a request to a path that is no server's may hear so.
// If not, it has refused the request. Where servers have metadata everybody may, since that
// tells who asks which names there are. A token could not be verified, for it is for one
// server, and clients would log in to hear of a misspelling.
func (t *table) tells(w http.ResponseWriter, r *http.Request) bool {
	if t.hasMetadata() {
		w.Header().Set("Connection", "close") // the rest of the body is not read
		return true
	}
	_, ok := t.guard.Authenticate(w, r)
	return ok
}

// hasMetadata reports whether servers have metadata unless they have an auth of their own.
func (t *table) hasMetadata() bool {
	_, ok := t.guard.Auth.(auth.Resource)
	return ok
}

// listed ends an error with the names of all servers, unless everybody may see the error:
// metadata tells of a name to those who know it.
func (t *table) listed() string {
	if t.hasMetadata() {
		return ""
	}
	return fmt.Sprintf("; the servers are %v", t.order)
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

// serveNowhere answers a request to a path that is no server's.
func (t *table) serveNowhere(w http.ResponseWriter, r *http.Request) {
	if t.tells(w, r) {
		downstream.WriteError(w, http.StatusNotFound, wire.ID{}, mcp.Absent(spec.CodeInvalidRequest,
			"nothing is served at %s; use /mcp/NAME%s", r.URL.Path, t.listed()))
	}
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
	t := s.g.now()
	m, err := wire.Parse(text, wire.Options{MaxDepth: t.depth, UniqueParams: true, NullParams: s.quirks.Tolerates(quirks.NullParams)})
	if m.ID.Len() > t.lengths.ID && err != nil {
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
	if wire.TooDeep(err) {
		s.limits.Hit(limits.Depth.Key, "message refused: it nests too deeply", "limit", s.g.now().depth)
	}
}

// check returns an error if a part of a message is too long, after counting and logging it.
func (s *server) check(m *wire.Message) error {
	tooLong := s.g.now().lengths.Check(m)
	if tooLong == nil {
		return nil // and no typed nil in the interface
	}
	s.limits.Hit(tooLong.Limit.Key, "message refused: a part is too long", "part", tooLong.What, "length", tooLong.Len, "limit", tooLong.Max)
	return tooLong
}

func parseError(err error) *wire.Error {
	switch {
	case wire.TooDeep(err):
		return wire.Errorf(spec.CodeParse, "%v; nest less, or %s", err, limits.Depth.Raise())
	case errors.As(err, new(*wire.SyntaxError)):
		return wire.Errorf(spec.CodeParse, "%v", err)
	}
	return wire.Errorf(spec.CodeInvalidRequest, "%v", err)
}

func refuseModernBatch(w http.ResponseWriter) {
	downstream.WriteError(w, http.StatusBadRequest, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest,
		"revision %s has no batches; send each message in a POST of its own", spec.Rev20260728))
}

// unknownServer returns an error that lists the servers, if all may see them, so that people
// see a misspelling.
func (t *table) unknownServer(name string) *wire.Error {
	hint := cmp.Or(t.listed(), "; check the name in the URL, in which capital letters count")
	return mcp.Absent(spec.CodeInvalidRequest, "there is no server named %q%s", mcp.Shorten(name), hint)
}
