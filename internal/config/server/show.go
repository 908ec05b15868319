package server

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Target returns a line for people and logs that says how the server is reached. It shows
// variables as they were written, and masks credentials.
func (s *Options) Target() string {
	switch {
	case s.Builtin != "":
		return "builtin " + s.Builtin
	case s.Command != "":
		return strings.Join(append([]string{asWritten(s.Command, s.written.command)}, s.maskedArgs()...), " ")
	case strings.Contains(s.written.url, "${"):
		path, query, _ := strings.Cut(s.written.url, "?")
		return path + value.MaskedQuery(query)
	}
	return value.MaskedURL(s.URL)
}

// Configured returns what the configuration says of the era of a server, and would find out without:
// era, or type: sse. Empty means nothing.
func (s *Options) Configured() string {
	switch {
	case s.Type == "sse":
		return "type: sse"
	case s.KnownEra() != spec.Unknown:
		return "era: " + s.Era
	}
	return ""
}

// HeaderNames returns the names of the configured headers, in order.
func (s *Options) HeaderNames() []string { return sortedNames(s.Headers) }

func sortedNames(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}

// maskedArgs returns the arguments with masked credentials. Variables are as written.
func (s *Options) maskedArgs() []string {
	args := slices.Clone(s.Args)
	for i, from := range s.credentials() {
		if from >= 0 {
			args[i] = args[i][:from] + value.Masked
		} else {
			args[i] = asWritten(args[i], s.writtenArg(i))
		}
	}
	return args
}

func (s *Options) writtenArg(i int) string {
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

// NoteWritten keeps the values of s as they were before the expansion of variables, below
// path.
func (s *Options) NoteWritten(rep *key.Report, path string) {
	text := func(names ...string) string { return rep.Places[key.Join(path, names...)].Text }
	s.written = written{command: text("command"), url: text("url")}
	for i := range s.Args {
		s.written.args = append(s.written.args, text("args", strconv.Itoa(i)))
	}
}
