package link

import (
	"net/http"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// An Endpoint is the URL of a server, which the Links of all its sessions share.
type Endpoint struct {
	http *upstream.HTTP
	base http.Header // added to every request

	ids *atomic.Int64 // of requests, over all sessions, because some servers keep the ids of all sessions in one table
}

// NewEndpoint returns the endpoint at o.URL, which must be valid.
func NewEndpoint(o *upstream.Options) *Endpoint {
	return &Endpoint{
		http: upstream.NewHTTP(o, reading),
		base: o.BaseHeader(),
		ids:  new(atomic.Int64),
	}
}

// As returns the endpoint for the sessions of a principal.
func (e *Endpoint) As(p mcp.Principal) *Endpoint {
	return &Endpoint{http: e.http.As(p), base: e.base, ids: e.ids}
}

// Close closes idle connections.
func (e *Endpoint) Close() { e.http.Close() }

// headers returns the headers of a session's requests: of POSTs, and of requests without a
// body. Both are shared and must not be changed.
func (e *Endpoint) headers(session string, revision spec.Revision) (post, get http.Header) {
	post = e.base.Clone()
	if revision != "" {
		post.Set(spec.HeaderProtocolVersion, string(revision))
	}
	if session != "" {
		post.Set(spec.HeaderSession, session)
	}
	get = post.Clone()
	get.Set("Accept", spec.TypeStream)
	get.Del("Content-Type")
	return post, get
}

// resuming returns the headers of a GET that resumes a stream after an event.
func resuming(get http.Header, lastID string) http.Header {
	if lastID == "" {
		return get
	}
	get = get.Clone()
	get.Set(spec.HeaderLastEventID, lastID)
	return get
}
