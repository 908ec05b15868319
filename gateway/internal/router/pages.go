package router

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/origin"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// isPage reports whether a request is for a page.
func (t *table) isPage(r *http.Request) bool {
	return slices.ContainsFunc(t.opts.PagePaths, func(path string) bool { return strings.HasPrefix(r.URL.Path, path) })
}

// servePage serves a page to a browser. Its Host is checked here, and its Origin by the page, whose
// forms are its own.
func (g *Gateway) servePage(w http.ResponseWriter, r *http.Request, t *table) {
	if !t.origins.Hosts.Allow(r) {
		downstream.WriteError(w, http.StatusForbidden, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "%s", origin.HostRefusal(r)))
		return
	}
	place, limit, most := g.inflight.Enter(t.proxies.ShareOf(r, mcp.Anonymous))
	if limit != nil {
		g.refuseInFlight(w, r, limit, most)
		return
	}
	defer place.Leave()
	r.RemoteAddr = t.proxies.Address(r)
	t.opts.Pages.ServeHTTP(w, r)
}
