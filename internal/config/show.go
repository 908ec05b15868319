package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/secret"
)

// Target returns a line for people and logs that says how the server is reached. It shows
// variables as they were written, and masks credentials.
func (s *Server) Target() string {
	switch {
	case s.Builtin != "":
		return "builtin " + s.Builtin
	case s.Command != "":
		return strings.Join(append([]string{asWritten(s.Command, s.written.command)}, s.maskedArgs()...), " ")
	case strings.Contains(s.written.url, "${"):
		path, query, _ := strings.Cut(s.written.url, "?")
		return path + secret.Query(query)
	}
	return secret.URL(s.URL)
}

// HeaderNames returns the names of the configured headers, in order.
func (s *Server) HeaderNames() []string { return sortedNames(s.Headers) }

// EnvNames returns the names of the configured environment, in order.
func (s *Server) EnvNames() []string { return sortedNames(s.Env) }

func sortedNames(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}

// maskedArgs returns the arguments with masked credentials. Variables are as written.
func (s *Server) maskedArgs() []string {
	args := slices.Clone(s.Args)
	for i, from := range s.credentials() {
		if from >= 0 {
			args[i] = args[i][:from] + secret.Masked
		} else {
			args[i] = asWritten(args[i], s.writtenArg(i))
		}
	}
	return args
}

// credentials returns for each argument where a credential begins, or -1. A credential
// follows, or is assigned to, a name such as those of --token x, --token=x, API_KEY=x and
// "Authorization: x".
func (s *Server) credentials() []int {
	var begins []int
	next := false
	for _, a := range s.Args {
		from := -1
		end := strings.IndexAny(a, "=:")
		sounds := secret.Names(a[:max(end, 0)]) || end < 0 && secret.Names(a)
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

func (s *Server) writtenArg(i int) string {
	if i < len(s.written.args) {
		return s.written.args[i]
	}
	return ""
}

// asWritten returns the value or, if the written text contains a variable, that text.
func asWritten(value, written string) string {
	if strings.Contains(written, "${") {
		return written
	}
	return value
}
