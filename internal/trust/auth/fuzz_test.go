package auth

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzBearer reads the credential of any request: what it returns is what one header has,
// and nothing else.
func FuzzBearer(f *testing.F) {
	f.Add("Bearer abc", "", "")
	f.Add("bearer  abc==", "Bearer x", "a=b&access_token=c")
	f.Add("Basic x", "", "%61ccess_token=1")
	f.Fuzz(func(t *testing.T, first, second, query string) {
		r := &http.Request{URL: &url.URL{RawQuery: query}, Header: http.Header{"Authorization": {first}}}
		if second != "" {
			r.Header["Authorization"] = []string{first, second}
		}
		token, err := bearer(r, nil)
		if err != nil && token != "" {
			t.Fatalf("bearer(%q) = %q, %v", first, token, err)
		}
		if err != nil {
			return
		}
		scheme, rest, _ := strings.Cut(first, " ")
		if second != "" || !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(rest) != token || strings.ContainsAny(token, " ,;\"\r\n\x00") || token == "" {
			t.Fatalf("bearer(%q, %q) = %q", first, second, token)
		}
		if values, err := url.ParseQuery(query); err == nil && values.Has("access_token") {
			t.Fatalf("bearer took %q although the query %q has a token", token, query)
		}
	})
}

// FuzzEscape holds two names that differ apart, whatever they are.
func FuzzEscape(f *testing.F) {
	f.Add("a b", "a%20b")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := escape(a), escape(b)
		if (x == y) != (a == b) || strings.ContainsAny(x, " \n\x00") {
			t.Fatalf("escape(%q) = %q, escape(%q) = %q", a, x, b, y)
		}
	})
}
