package peer

import (
	"crypto/tls"
	"errors"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// sinceTLS is the first revision of replicas that tell whether they serve others over TLS.
const sinceTLS = 3

// scheme returns how a replica is reached.
func (g *Group) scheme(to replicas.Replica) string {
	if !g.secure || g.plain && to.Revision >= sinceTLS && !to.TLS {
		return "http"
	}
	return "https"
}

// inEither sends a hello to a replica of which it may not be known whether it has TLS: over TLS,
// and if that is allowed, without it where the other has none.
func (g *Group) inEither(to replicas.Replica, r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	resp, err := send(r)
	if !g.plain || to.Revision >= sinceTLS || !errors.As(err, new(tls.RecordHeaderError)) {
		return resp, err
	}
	again := r.Clone(r.Context())
	again.URL.Scheme = "http"
	return send(again)
}
