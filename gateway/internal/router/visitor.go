package router

import (
	"net/http"
	"strings"

	"github.com/mcpbridge/mcpbridge/gateway/internal/forward"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// isVisit reports whether a request is that of a person who has opened an endpoint in a browser:
// it wants a page rather than messages, and has nothing that only clients send.
func isVisit(r *http.Request, at forward.Endpoint) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || at == forward.Messages || transport.IsUpgrade(r) {
		return false
	}
	for _, name := range []string{spec.HeaderSession, spec.HeaderProtocolVersion, spec.HeaderLastEventID} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	return downstream.PrefersPage(r.Header.Values("Accept"))
}

// newVisitPage returns the page about the server of a request.
func newVisitPage(s *server, r *http.Request, at forward.Endpoint) downstream.Page {
	base := "http://" + r.Host + prefixOf(r)
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		base = "https://" + r.Host + prefixOf(r)
	}
	p := downstream.Page{Name: s.name, Group: s.group != nil, Known: s.guard.Auth != auth.None, Events: base + forward.Events.Path(s.name)}
	switch {
	case s.guard.Endpoint != nil:
		p.URL, p.Events = s.guard.Endpoint.Resource, ""
	case at == forward.Streamable:
		p.URL = base + strings.TrimSuffix(r.URL.Path, "/")
	default:
		p.URL = base + forward.Streamable.Path(s.name)
	}
	return p
}
