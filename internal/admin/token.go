package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// A token is what requests have to send; empty means nothing.
type token string

// allows reports whether a request has the token, as a bearer token in its only
// Authorization header.
//
// Spec: RFC 6750, 2.1.
func (t token) allows(r *http.Request) bool {
	if t == "" {
		return true
	}
	// Digests are of one length, so that the time says nothing of the token's.
	want, got := sha256.Sum256([]byte(t)), sha256.Sum256([]byte(bearer(r.Header)))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// guard serves only requests that have the token.
func (t token) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !t.allows(r) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="admin"`)
			http.Error(w, "send admin_token, as Authorization: Bearer TOKEN", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// bearer returns the token of the only Authorization header; empty if there is none.
func bearer(h http.Header) string {
	if len(h["Authorization"]) != 1 {
		return ""
	}
	scheme, text, _ := strings.Cut(h["Authorization"][0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(text)
}
