package hostfile

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// setHeaders reads Codex' headers.
func (s *server) setHeaders(kv pair) {
	if kv.value.Kind != yaml.MappingNode {
		s.set("headers", kv.key, kv.value)
		return
	}
	for _, h := range pairs(kv.value) {
		s.addHeader(kv, h.name(), h.value)
	}
}

// setHeadersFrom reads the headers that Codex takes from environment variables.
func (s *server) setHeadersFrom(kv pair) {
	for _, h := range pairs(kv.value) {
		s.addHeader(kv, h.name(), text("${"+h.value.Value+"}", h.value.Line))
	}
}

// setBearer reads the variable in which Codex finds a token.
func (s *server) setBearer(kv pair) {
	s.addHeader(kv, "Authorization", text("Bearer ${"+kv.value.Value+"}", kv.value.Line))
}

func (s *server) addHeader(kv pair, name string, value *yaml.Node) {
	headers := s.table("headers", kv)
	if valueOf(headers, name) != nil {
		s.noteOn(kv, "has no effect on %s, which another key sets", name)
		return
	}
	headers.Content = append(headers.Content, text(name, kv.key.Line), value)
}

// setEnvVars reads the variables that Codex passes on, if they are set.
func (s *server) setEnvVars(kv pair) {
	env := s.table("env", kv)
	for _, name := range textsOf(kv.value) {
		if valueOf(valueOf(s.from, "env"), name) == nil {
			env.Content = append(env.Content, text(name, kv.key.Line), text("${"+name+":-}", kv.value.Line))
		}
	}
}

// setLimit reads a timeout whose unit is known, as one of those below timeouts.
func setLimit(name string, unit time.Duration) func(*server, pair) {
	return func(s *server, kv pair) {
		n, err := strconv.ParseFloat(strings.ReplaceAll(kv.value.Value, "_", ""), 64)
		d := time.Duration(n * float64(unit))
		if kv.value.Kind != yaml.ScalarNode || err != nil || d < shortestTimeout || d > longestTimeout {
			s.noteOn(kv, "is not a time between 100ms and 24h, and has no effect")
			return
		}
		s.addTimeout(kv, name, d)
	}
}

// addTimeout sets one of the times below timeouts.
func (s *server) addTimeout(kv pair, name string, d time.Duration) {
	t := s.table("timeouts", kv)
	if valueOf(t, name) != nil {
		return
	}
	t.Content = append(t.Content, text(name, kv.key.Line), text(DurationText(d), kv.value.Line))
	if name == "request" && d > defaultMax {
		t.Content = append(t.Content, text("max", kv.key.Line), text(DurationText(d), kv.value.Line))
	}
}

// setCommand reads a command, also in the shape that Zed had before: {path, args, env}.
func (s *server) setCommand(kv pair) {
	if s.host != zed || kv.value.Kind != yaml.MappingNode {
		s.set("command", kv.key, kv.value)
		return
	}
	for _, part := range pairs(kv.value) {
		switch name := part.name(); {
		case name == "path":
			s.set("command", part.key, part.value)
		case slices.Contains([]string{"args", "env"}, name):
			s.set(name, part.key, part.value)
		}
	}
}

// ofExtension reports whether an extension of Zed knows how a server is started, and the file does
// not.
func (a *adapter) ofExtension(server *yaml.Node) bool {
	return a.host == zed && server.Kind == yaml.MappingNode && valueOf(server, "command") == nil && valueOf(server, "url") == nil
}
