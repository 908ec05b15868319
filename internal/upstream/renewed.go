package upstream

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Renewed has values of Options.Headers that were replaced while the server is in use: those
// of a credential that was read again. Its zero value, and nil, replace none. Safe for
// concurrent use.
type Renewed struct{ values atomic.Pointer[http.Header] }

// Set replaces the values for all further requests. Headers that a connection has sent
// already stay.
func (r *Renewed) Set(headers http.Header) {
	values := headers.Clone()
	maps.DeleteFunc(values, func(name string, _ []string) bool { return ofProtocol(name) })
	r.values.Store(&values)
}

// over returns headers with the values that were replaced: headers itself if none was.
func (r *Renewed) over(headers http.Header) http.Header {
	if r == nil {
		return headers
	}
	values := r.values.Load()
	if values == nil {
		return headers
	}
	out := maps.Clone(headers)
	if out == nil {
		out = make(http.Header)
	}
	maps.Copy(out, *values)
	return out
}

// ofProtocol reports whether a header is not the configuration's to set.
func ofProtocol(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return strings.HasPrefix(name, "Mcp-") ||
		slices.Contains([]string{spec.HeaderLastEventID, "Host", "Content-Length", "Accept-Encoding", "Accept", "Content-Type"}, name)
}
