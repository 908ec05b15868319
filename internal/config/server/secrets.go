package server

import (
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

// Secrets returns what logs, errors and reports of the server must not contain.
func (s *Options) Secrets() []string {
	out := slices.Concat(value.SecretsInURL(s.URL), s.Auth.Secrets(), s.UpstreamAuth.Secrets())
	for _, text := range s.Headers {
		out = append(out, value.SecretsInHeader(text)...)
	}
	for _, text := range s.Env {
		out = append(append(out, text), value.SecretsInURL(text)...)
	}
	for i, from := range s.credentials() {
		out = append(out, value.SecretsInURL(s.Args[i])...)
		if from >= 0 {
			out = append(out, value.SecretsInHeader(strings.TrimSpace(s.Args[i][from:]))...)
		}
	}
	return out
}

// credentials returns for each argument where a credential begins, or -1. A credential
// follows, or is assigned to, a name such as those of --token x, --token=x, API_KEY=x and
// "Authorization: x".
func (s *Options) credentials() []int {
	var begins []int
	next := false
	for _, a := range s.Args {
		from := -1
		end := strings.IndexAny(a, "=:")
		sounds := value.IsSecretName(a[:max(end, 0)]) || end < 0 && value.IsSecretName(a)
		switch {
		case next:
			from = 0
		case end >= 0 && sounds:
			from = end + 1
		}
		begins = append(begins, from)
		next = sounds && end < 0 && strings.HasPrefix(a, "-")
	}
	return begins
}

// WritesCredential reports whether an argument is a credential that was written as it is.
func (s *Options) WritesCredential() bool {
	for i, from := range s.credentials() {
		if text := s.writtenArg(i); from >= 0 && text != "" && !strings.Contains(text, "${") {
			return true
		}
	}
	return false
}

// SendsCredentials reports whether requests to the server grant access.
func (s *Options) SendsCredentials() bool {
	return s.UpstreamAuth != nil || slices.ContainsFunc(s.HeaderNames(), value.IsSecretName) || value.URLCarriesSecret(s.URL)
}
