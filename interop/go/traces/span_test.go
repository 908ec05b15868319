package traces

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// A span is one as the collector prints it.
type span struct {
	trace, id, parent, name, kind, status string
	attributes                            map[string]string
	events                                []string // by name, with the attributes
	links                                 []string // ids of spans
}

var (
	memberLine    = regexp.MustCompile(`^    ([A-Z][A-Za-z ]*?)\s*: (.*)$`)
	attributeLine = regexp.MustCompile(`^\s+-> ([a-z][a-z0-9_.]*): [A-Z][a-z]+\((.*)\)$`)
)

// spans returns those that the collector has printed, once there are n of them, but for those
// of requests of the gateway's own.
func (c *collector) spans(t *testing.T, n int) (all []*span) {
	t.Helper()
	rig.Until(t, 2*time.Minute, "spans at the collector", func() string {
		if all = slices.DeleteFunc(readSpans(c.Log()), (*span).isOwn); len(all) < n {
			return c.Log()
		}
		return ""
	})
	if len(all) != n {
		t.Fatalf("%d spans, want %d:\n%s", len(all), n, c.Log())
	}
	return all
}

// isOwn reports whether a span is of a request of the gateway's own.
func (s *span) isOwn() bool { return s.kind == "Client" && s.parent == "" }

// own waits for spans of requests of the gateway's own to a server, by their methods.
func (c *collector) own(t *testing.T, server string, methods ...string) {
	t.Helper()
	rig.Until(t, 2*time.Minute, "spans of the gateway's own requests", func() string {
		missing := slices.Clone(methods)
		for _, s := range readSpans(c.Log()) {
			if s.isOwn() && s.attributes["mcpbridge.server"] == server && s.trace != clientTrace && s.attributes["mcp.method.name"] == s.name {
				missing = slices.DeleteFunc(missing, func(method string) bool { return method == s.name })
			}
		}
		if len(missing) > 0 {
			return strings.Join(missing, " ") + " missing in " + c.Log()
		}
		return ""
	})
}

func readSpans(text string) (all []*span) {
	var s *span
	part := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "Span #"):
			s, part = &span{attributes: map[string]string{}}, ""
			all = append(all, s)
		case s == nil:
		case strings.HasPrefix(line, "Attributes:"), strings.HasPrefix(line, "Events:"), strings.HasPrefix(line, "Links:"):
			part = strings.TrimSuffix(line, ":")
		case strings.HasPrefix(line, "ResourceSpans #"), strings.HasPrefix(line, "ScopeSpans #"), line == "":
			s = nil
		default:
			s.read(part, line)
		}
	}
	return all
}

// read reads one line of a part of a span.
func (s *span) read(part, line string) {
	m, a := memberLine.FindStringSubmatch(line), attributeLine.FindStringSubmatch(line)
	text := strings.TrimSpace(line)
	switch {
	case part == "" && m != nil:
		s.member(m[1], m[2])
	case part == "Attributes" && a != nil:
		s.attributes[a[1]] = a[2]
	case part == "Events" && strings.HasPrefix(text, "-> Name: "):
		s.events = append(s.events, strings.TrimPrefix(text, "-> Name: "))
	case part == "Events" && a != nil:
		s.events[len(s.events)-1] += " " + a[2]
	case part == "Links" && strings.HasPrefix(text, "-> ID: "):
		s.links = append(s.links, strings.TrimPrefix(text, "-> ID: "))
	}
}

func (s *span) member(name, value string) {
	for of, to := range map[string]*string{"Trace ID": &s.trace, "Parent ID": &s.parent, "ID": &s.id, "Name": &s.name, "Kind": &s.kind, "Status code": &s.status} {
		if name == of {
			*to = value
		}
	}
}

// find returns the spans of a kind whose name is one of names, in the order of their ids in
// JSON-RPC, which is that of time.
func find(all []*span, kind string, names ...string) (out []*span) {
	for _, s := range all {
		if s.kind == kind && slices.Contains(names, s.name) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *span) int {
		return strings.Compare(a.attributes["jsonrpc.request.id"], b.attributes["jsonrpc.request.id"])
	})
	return out
}

// is checks a span's place and its attributes.
func (s *span) is(t *testing.T, what, parent string, attributes map[string]string) {
	t.Helper()
	if s.trace != clientTrace || s.parent != parent {
		t.Errorf("%s: trace %s, parent %s; want %s and %s", what, s.trace, s.parent, clientTrace, parent)
	}
	for name, want := range attributes {
		if got := s.attributes[name]; got != want {
			t.Errorf("%s: %s is %q, want %q", what, name, got, want)
		}
	}
}
