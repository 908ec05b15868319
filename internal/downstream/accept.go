package downstream

import (
	"mime"
	"net/http"
	"strings"
)

// Accepts reports whether an Accept header includes a media type; a missing header includes all.
func Accepts(h http.Header, want string) bool {
	values := h.Values("Accept")
	if len(values) == 0 {
		return true
	}
	family, _, _ := strings.Cut(want, "/")
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		typ, params, err := mime.ParseMediaType(part)
		if err == nil && params["q"] != "0" && (typ == want || typ == "*/*" || typ == family+"/*") {
			return true
		}
	}
	return false
}
