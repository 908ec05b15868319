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
func (t token) allows(r *http.Request) bool { return t == "" || t.is(bearer(r.Header)) }

// is reports whether text is the token, in a time that says nothing of either.
func (t token) is(text string) bool {
	// Digests are of one length, so that the time says nothing of the token's.
	want, got := sha256.Sum256([]byte(t)), sha256.Sum256([]byte(text))
	return t != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1
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

// challenge answers a request without the token.
func challenge(w http.ResponseWriter, key string) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="admin"`)
	http.Error(w, "send "+key+", as Authorization: Bearer TOKEN", http.StatusUnauthorized)
}
