package hostfile

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// A server is a server of a host's file that is being converted.
type server struct {
	*adapter
	from, out *yaml.Node
	path      []string
}

// mapped has the supported keys of hosts, and the function that converts each.
var mapped = map[string]func(*server, pair){
	"type":          (*server).setType,
	"transportType": (*server).setType,
	"transport":     (*server).setType,
	"url":           (*server).setURL,
	"serverUrl":     (*server).setURL,
	"baseUrl":       (*server).setURL,
	"httpUrl":       (*server).setHTTP,
	"timeout":       (*server).setTimeout,
	"envFile":       func(s *server, kv pair) { s.setPath("env_file", kv) },
	"cwd":           func(s *server, kv pair) { s.setPath("cwd", kv) },
	"env":           (*server).setEnv,
	"enabled":       (*server).setEnabled,
	"disabled":      (*server).setDisabled,
	"includeTools":  (*server).setAllow,
	"enabledTools":  (*server).setAllow,
	"tools":         (*server).setAllow,
	"excludeTools":  (*server).setDeny,
	"disabledTools": (*server).setDeny,
	"command":       (*server).setCommand,

	"http_headers":         (*server).setHeaders,
	"env_http_headers":     (*server).setHeadersFrom,
	"bearer_token_env_var": (*server).setBearer,
	"env_vars":             (*server).setEnvVars,
	"enabled_tools":        (*server).setAllow,
	"disabled_tools":       (*server).setDeny,
	"startup_timeout_sec":  setLimit("connect", time.Second),
	"startup_timeout_ms":   setLimit("connect", time.Millisecond),
	"tool_timeout_sec":     setLimit("request", time.Second),
}

func (s *server) read() {
	s.out = mapping(s.from.Line)
	for _, kv := range pairs(s.from) {
		here := append(slices.Clone(s.path), kv.name())
		read, note := mapped[kv.name()], unmapped[kv.name()]
		switch {
		case read != nil:
			read(s, kv)
		case slices.Contains(s.o.Keys, kv.name()):
			s.set(kv.name(), kv.key, kv.value)
		case note != "" && (isOff(kv.value) || s.host == zed && kv.value.Value == "custom"):
		case note != "":
			s.note(kv.key, here, "%s", note)
		default:
			s.note(kv.key, here, "is not known here and has no effect; %s", s.o.Suggest(kv.name()))
		}
	}
	s.replace(s.out, s.path)
}

// isOff reports whether n means the same as a missing key: false, or an empty list.
func isOff(n *yaml.Node) bool {
	return n.Tag == "!!bool" && n.Value == "false" || n.Kind == yaml.SequenceNode && len(n.Content) == 0
}

func (s *server) set(name string, key, value *yaml.Node) {
	s.out.Content = append(s.out.Content, text(name, key.Line), value)
}

// setPath makes a path that is relative to the host's project absolute.
func (s *server) setPath(name string, kv pair) {
	v := *kv.value
	if v.Kind == yaml.ScalarNode && (name != "cwd" || workspace(s.o.Path) != "") {
		v.Value = under(s.folder, v.Value)
	}
	s.set(name, kv.key, &v)
}

func (s *server) has(name string) bool { return valueOf(s.from, name) != nil }

func (s *server) noteOn(kv pair, format string, args ...any) {
	s.note(kv.key, append(slices.Clone(s.path), kv.name()), format, args...)
}

// setURL converts all spellings to url. It keeps the second of two, so that the check of
// the result reports it.
func (s *server) setURL(kv pair) {
	name := "url"
	switch {
	case s.has("httpUrl"):
		s.noteOn(kv, "has no effect beside httpUrl")
		return
	case kv.name() != "url" && s.has("url"):
		name = kv.name()
	}
	s.set(name, kv.key, kv.value)
}

// setHTTP reads Gemini CLI's URL of Streamable HTTP.
func (s *server) setHTTP(kv pair) {
	s.set("url", kv.key, kv.value)
	if !s.has("type") {
		s.set("type", kv.key, text("http", kv.value.Line))
	}
}

// setType reads all spellings of the transport.
func (s *server) setType(kv pair) {
	if kv.name() != "type" && s.has("type") {
		return // the newer spelling has precedence, as in Cline
	}
	v := *kv.value
	if strings.HasPrefix(v.Value, "streamable") {
		v.Value = "http"
	}
	if s.host == vscode && v.Value == "http" {
		return // VS Code then tries HTTP+SSE, as mcpbridge does for a URL without type
	}
	s.set("type", kv.key, &v)
}

// setEnabled converts the opposite of disabled.
func (s *server) setEnabled(kv pair) {
	if kv.value.Value == "false" && !s.has("disabled") {
		s.set("disabled", kv.key, scalar("!!bool", "true", kv.value.Line))
	}
}

// setDisabled omits the value that hosts write into every server.
func (s *server) setDisabled(kv pair) {
	if !isOff(kv.value) {
		s.set("disabled", kv.key, kv.value)
	}
}

// setEnv omits the variables that a host removes by null.
func (s *server) setEnv(kv pair) {
	if kv.value.Kind != yaml.MappingNode {
		s.set("env", kv.key, kv.value)
		return
	}
	env := s.table("env", kv)
	for _, v := range pairs(kv.value) {
		if v.value.Tag == "!!null" {
			s.note(v.key, append(slices.Clone(s.path), "env", v.name()), "null takes a variable away, and has no effect here: commands get a minimal environment anyway")
			continue
		}
		env.Content = append(env.Content, v.key, v.value)
	}
}

// table returns what has been read as a table of the given name; a new one if there is none.
func (s *server) table(name string, kv pair) *yaml.Node {
	t := valueOf(s.out, name)
	if t == nil {
		t = mapping(kv.value.Line)
		s.set(name, kv.key, t)
	}
	return t
}

const (
	shortestTimeout = 100 * time.Millisecond
	longestTimeout  = 24 * time.Hour
	defaultMax      = time.Hour // of timeouts.max
)

// setTimeout converts a number to timeouts.request. Hosts differ in its unit, and people
// copy settings from one to the other.
func (s *server) setTimeout(kv pair) {
	n, err := strconv.ParseFloat(kv.value.Value, 64)
	if kv.value.Kind != yaml.ScalarNode || err != nil || n <= 0 {
		s.noteOn(kv, "is not a number of seconds or milliseconds, and has no effect")
		return
	}
	unit, why := s.unit(n)
	d := time.Duration(n * float64(unit))
	if d < shortestTimeout || d > longestTimeout {
		s.noteOn(kv, "%s is out of the range of 100ms to 24h, and has no effect", kv.value.Value)
		return
	}
	s.noteOn(kv, "%s is read as %s, for timeouts.request: %s", kv.value.Value, DurationText(d), why)
	if !s.has("timeouts") {
		s.addTimeout(kv, "request", d)
	}
}

// unit decides between seconds and milliseconds. The host's unit is used unless the time
// would be absurd: below a second, or hours.
func (s *server) unit(n float64) (time.Duration, string) {
	const absurdSeconds, absurdMillis = 10_000, 1_000
	switch {
	case s.host.unsure && n < absurdMillis:
		return time.Second, "so few can't be milliseconds"
	case s.host.unsure:
		return time.Millisecond, "so many can't be seconds"
	case s.host.seconds && n < absurdSeconds:
		return time.Second, s.host.Title + " counts in seconds"
	case s.host.seconds:
		return time.Millisecond, s.host.Title + " counts in seconds, but so many were meant as milliseconds"
	case n < absurdMillis:
		return time.Second, s.host.Title + " counts in milliseconds, but so few were meant as seconds"
	}
	return time.Millisecond, s.host.Title + " counts in milliseconds"
}

// DurationText writes d as configuration files have it: 1m, not 1m0s.
func DurationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
