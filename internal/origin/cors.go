package origin

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
	// corsAge is how long a browser may cache the response to a preflight, in seconds.
	corsAge = "600"
)

// corsHeaders are the headers that pages may send, in canonical form, in addition to those
// that begin with spec.HeaderParamPrefix.
var corsHeaders = []string{
	"Content-Type", "Accept", "Authorization", spec.HeaderSession, spec.HeaderProtocolVersion,
	spec.HeaderMethod, spec.HeaderName, spec.HeaderLastEventID,
}

// Share lets pages whose origin [Policy.Refuse] has allowed read the responses: for
// example, inspectors that run in a browser. It answers OPTIONS requests, and reports
// whether it did: a browser's preflight has no credentials and no era.
//
// Spec: Fetch, HTTP-cors-protocol.
func Share(w http.ResponseWriter, r *http.Request) (answered bool) {
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

// answerOptions answers a preflight. Its response repeats those of the requested headers
// that are allowed.
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

// headerShared reports whether pages may send a header. It compares the canonical form; a
// name that is not a token stays in lower case and matches nothing.
func headerShared(name string) bool {
	name = textproto.CanonicalMIMEHeaderKey(strings.ToLower(name))
	return slices.Contains(corsHeaders, name) || strings.HasPrefix(name, spec.HeaderParamPrefix)
}
