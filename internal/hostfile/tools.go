package hostfile

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// setAllow reads the tools that a host offers of a server: those alone are shown. An empty
// list is none of them.
func (s *server) setAllow(kv pair) {
	switch {
	case kv.name() == "tools" && s.host == codex:
		s.noteOn(kv, "%s", noAsking)
	case kv.name() == "tools" && kv.value.Kind == yaml.MappingNode:
		s.set("tools", kv.key, kv.value) // is ours
	case kv.value.Kind == yaml.SequenceNode && len(kv.value.Content) == 0:
		s.noteOn(kv, "is empty: no tool of the server is shown")
		all := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: kv.value.Line, Content: []*yaml.Node{text("*", kv.value.Line)}}
		s.setTools("deny", kv, all)
	case holds(kv.value, "*"):
	default:
		s.setTools("allow", kv, withoutArguments(kv.value))
	}
}

// setDeny reads the tools that a host does not offer.
func (s *server) setDeny(kv pair) {
	if !isOff(kv.value) {
		s.setTools("deny", kv, kv.value)
	}
}

// setTools sets a list below tools, or adds to the one that is there.
func (s *server) setTools(name string, kv pair, list *yaml.Node) {
	if kv.value.Tag == "!!null" {
		return
	}
	tools := valueOf(s.out, "tools")
	if tools == nil {
		tools = mapping(kv.value.Line)
		s.set("tools", kv.key, tools)
	}
	switch had := valueOf(tools, name); {
	case had == nil:
		tools.Content = append(tools.Content, text(name, kv.key.Line), list)
	case name == "deny" && had.Kind == yaml.SequenceNode && list.Kind == yaml.SequenceNode:
		had.Content = append(had.Content, list.Content...)
	default:
		s.noteOn(kv, "has no effect beside the other list of tools that are shown")
	}
}

// withoutArguments returns names of tools without the arguments that Gemini CLI allows behind
// them: which ones are called with is not decided here.
func withoutArguments(list *yaml.Node) *yaml.Node {
	out := *list
	out.Content = slices.Clone(list.Content)
	for i, n := range out.Content {
		if name, _, ok := strings.Cut(n.Value, "("); ok && n.Kind == yaml.ScalarNode {
			out.Content[i] = text(name, n.Line)
		}
	}
	return &out
}
