package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// forms returns a secret in all the ways that it is written: as it is, in a URL, in
// JSON, in quotes, in quotes within JSON, and base64 of a user with a password.
func forms(secret string) []string {
	if len(secret) < MinSecret {
		return nil
	}
	out := []string{secret, quoted(secret), quoted(quoted(secret)), inJSON(secret), inJSON(quoted(secret))}
	for _, escaped := range []string{url.QueryEscape(secret), url.PathEscape(secret)} {
		out = append(out, escaped, lowerEscapes(escaped))
	}
	if strings.Contains(secret, ":") {
		out = append(out, base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)))
	}
	return out
}

func quoted(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// inJSON writes s as JSON encoders do that mind HTML.
func inJSON(s string) string {
	q, err := json.Marshal(s)
	if err != nil {
		return s // no string fails
	}
	return string(q[1 : len(q)-1])
}

var escape = regexp.MustCompile(`%[0-9A-F]{2}`)

// lowerEscapes writes the escapes of a URL in lower case, as some programs do.
func lowerEscapes(s string) string { return escape.ReplaceAllStringFunc(s, strings.ToLower) }
