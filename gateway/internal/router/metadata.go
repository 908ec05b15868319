package router

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// metadataAge is for how long clients may keep metadata, in seconds.
const metadataAge = 300

// publishMetadata serves the metadata of each endpoint that is a resource of OAuth: at the
// path that its public URL says, and where the path is another for a proxy in front, at
// that of the endpoint here; with a slash at the end, too, as the endpoint. Who asks has no
// credential yet.
//
// Spec: RFC 9728, 3.1; 2026-07-28, basic/authorization, Protected Resource Metadata.
func (t *table) publishMetadata() error {
	documents := make(map[string][]byte)
	for _, s := range t.inOrder() {
		resource, ok := s.guard.Auth.(auth.Resource)
		if !ok || s.guard.Endpoint == nil {
			continue
		}
		path := s.guard.Endpoint.MetadataPath
		if documents[path] != nil {
			return fmt.Errorf("server %s: another server has the public URL %s, too", s.name, s.guard.Endpoint.Resource)
		}
		documents[path] = resource.Metadata(s.guard.Endpoint)
	}
	for _, s := range t.inOrder() {
		if here := auth.WellKnown + "/mcp/" + s.name; s.guard.Endpoint != nil && documents[here] == nil {
			documents[here] = documents[s.guard.Endpoint.MetadataPath]
		}
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		serveMetadata(w, r, documents[strings.TrimSuffix(r.URL.EscapedPath(), "/")])
	}
	t.mux.HandleFunc(auth.WellKnown, serve)
	t.mux.HandleFunc(auth.WellKnown+"/", serve)
	return nil
}

// serveMetadata serves a document, which is nil if there is none.
func serveMetadata(w http.ResponseWriter, r *http.Request, document []byte) {
	switch {
	case document == nil:
		downstream.WriteError(w, http.StatusNotFound, wire.ID{}, wire.Errorf(spec.CodeInvalidRequest, "no resource has its metadata here"))
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		notAllowed(w, "GET, HEAD", "GET the metadata")
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "max-age="+strconv.Itoa(metadataAge))
	h.Set("Content-Length", strconv.Itoa(len(document)))
	_, _ = w.Write(document) // the client has gone if it fails
}
