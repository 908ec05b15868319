package gateway

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

const (
	corsMethods = "GET, POST, DELETE"
	corsExposed = spec.HeaderSession + ", " + spec.HeaderProtocolVersion + ", WWW-Authenticate"
	// corsAge is for how long a browser may keep the answer to a preflight, in
	// seconds.
	corsAge = "600"
)

// corsHeaders are the headers that pages may send, in canonical form, beside those
// that begin with spec.HeaderParamPrefix.
var corsHeaders = []string{
	"Content-Type", "Accept", "Authorization", spec.HeaderSession, spec.HeaderProtocolVersion,
	spec.HeaderMethod, spec.HeaderName, spec.HeaderLastEventID,
}

// shareOrigin lets pages, whose origin origins.check has allowed, read the responses:
// inspectors that run in a browser, say. It reports whether it has answered the request, which it does
// with OPTIONS: a browser's question what a page may send carries no credentials and
// is of no era.
//
// Spec: Fetch, HTTP-cors-protocol.
func shareOrigin(w http.ResponseWriter, r *http.Request) (answered bool) {
	if origin := r.Header.Get("Origin"); origin != "" {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", corsExposed)
	}
	if r.Method != http.MethodOptions {
		return false
	}
	answerOptions(w, r)
	return true
}

// answerOptions says what may be sent. Of the headers that were asked for, those are
// named back that may be.
func answerOptions(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Allow", corsMethods+", OPTIONS")
	if r.Header.Get("Origin") != "" {
		h.Add("Vary", "Access-Control-Request-Headers")
		h.Set("Access-Control-Allow-Methods", corsMethods)
		h.Set("Access-Control-Allow-Headers", allowedHeaders(r.Header.Values("Access-Control-Request-Headers")))
		h.Set("Access-Control-Max-Age", corsAge)
	}
	w.WriteHeader(http.StatusNoContent)
}

func allowedHeaders(asked []string) string {
	if len(asked) == 0 {
		return strings.Join(corsHeaders, ", ")
	}
	var allowed []string
	for name := range strings.SplitSeq(strings.Join(asked, ","), ",") {
		if name = strings.TrimSpace(name); headerShared(name) {
			allowed = append(allowed, name)
		}
	}
	return strings.Join(allowed, ", ")
}

// headerShared goes by the canonical form, which a name that is no token has not: it
// stays in lower case.
func headerShared(name string) bool {
	name = textproto.CanonicalMIMEHeaderKey(strings.ToLower(name))
	return slices.Contains(corsHeaders, name) || strings.HasPrefix(name, spec.HeaderParamPrefix)
}
