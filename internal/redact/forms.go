package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// forms returns a secret in the forms in which it may appear: unchanged, in a URL, in
// JSON, in quotes, in quotes within JSON, and, for a user with a password, in base64.
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

// inJSON returns s as encoding/json writes it, with HTML characters escaped.
func inJSON(s string) string {
	q, err := json.Marshal(s)
	if err != nil {
		return s // a string always encodes
	}
	return string(q[1 : len(q)-1])
}

var escape = regexp.MustCompile(`%[0-9A-F]{2}`)

// lowerEscapes converts the escapes of a URL to lower case, as some programs write them.
func lowerEscapes(s string) string { return escape.ReplaceAllStringFunc(s, strings.ToLower) }
