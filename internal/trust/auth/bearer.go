package auth

import (
	"net/http"
	"net/url"
	"strings"
)

// MaxCredential limits an Authorization header, in bytes.
const MaxCredential = 16 << 10

// bearer returns the token of a request. The error is a [*Refusal]; if there is no token,
// it names the scopes. bearer refuses a second Authorization header, because a proxy and
// the gateway could use different ones (CWE-436), and a token in the query, which logs and
// Referer headers repeat (CWE-598).
//
// Spec: RFC 6750, 2; 2026-07-28, basic/authorization, Token Requirements.
func bearer(r *http.Request, scopes []string) (string, error) {
	token, err := credential(r, scopes)
	if err == nil {
		err = wellFormed(token)
	}
	if err != nil {
		return "", err
	}
	return token, nil
}

// wellFormed refuses a credential that is not a token.
func wellFormed(token string) error {
	if !isToken68(token) {
		return malformed("the Authorization header has no token")
	}
	return nil
}

// credential is bearer without wellFormed, which takes a while and is not necessary for a
// token that is known.
func credential(r *http.Request, scopes []string) (string, error) {
	if hasToken(r.URL.RawQuery) {
		return "", malformed("the query has an access token")
	}
	values := r.Header["Authorization"]
	switch {
	case len(values) == 0:
		return "", missing(scopes)
	case len(values) > 1:
		return "", malformed("two Authorization headers")
	case len(values[0]) > MaxCredential:
		return "", malformed("the Authorization header is too long")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", invalid(nil, "the scheme of the Authorization header is not Bearer")
	}
	if token = strings.TrimLeft(token, " "); token == "" {
		return "", wellFormed(token)
	}
	return token, nil
}

// hasToken reports whether a query has an access token, as RFC 6750 allowed in 2.3. Parts
// of the name may be escaped.
func hasToken(query string) bool {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, _, _ := strings.Cut(pair, "=")
		if strings.EqualFold(unescape(name), "access_token") {
			return true
		}
	}
	return false
}

// isToken68 reports whether a token is a token68.
//
// Spec: RFC 9110, 11.2.
func isToken68(token string) bool {
	token = strings.TrimRight(token, "=")
	for i := range len(token) {
		if !inToken[token[i]] {
			return false
		}
	}
	return token != ""
}

// inToken has the bytes that tokens consist of. A table is fast: it is used for each byte
// of each request's token.
var inToken = func() (in [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/") {
		in[c] = true
	}
	return in
}()

func unescape(name string) string {
	plain, err := url.QueryUnescape(name)
	if err != nil {
		return name
	}
	return plain
}
