package evict

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// maxBody bounds what another replica may tell at once, in bytes. It has at most maxPending
// changes, each with the length of a URI.
const maxBody = 64 << 20

// Serve evicts what another replica tells, whose envelope was opened, and answers what it
// asks. from is its instance.
func (g *Group) Serve(w http.ResponseWriter, r *http.Request, from string) {
	var m message
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields() // what a later version adds may evict something
	if err := d.Decode(&m); err != nil {
		g.unread.Warn(g.opts.Logger, "another replica tells what to evict, and it can't be read: forgetting all cached results", "replica", from, "err", err)
		g.opts.Cache.Clear()
		m = message{Ask: true} // it may have asked as well
	}
	g.evict(&m)
	if m.Ask && g.owes(from) {
		w.WriteHeader(http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// evict evicts results by the scopes that they have here.
func (g *Group) evict(m *message) {
	for _, ev := range m.Events {
		prefix := g.opts.Scope(mcp.ServerOf(ev.Topic.Scope))
		_, digest, _ := strings.Cut(ev.Topic.Scope, "/")
		if prefix == "" {
			continue
		}
		ev.Topic.Scope = prefix + "/" + digest
		g.opts.Cache.Evict(ev)
	}
	for _, server := range m.Forget {
		g.opts.Cache.Forget(server)
	}
}
