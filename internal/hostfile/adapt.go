package hostfile

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Note is a message about a setting in a host's file that has another meaning here, or
// none. It never contains a value that may be a secret.
type Note struct {
	Line int
	Path []string // of the key, from the top
	Text string
}

// Options are the options of [Host.Adapt].
type Options struct {
	Machine
	Path string   // of the file
	Keys []string // mcpbridge's keys of a server
	// Suggest returns the end of the note about an unknown key.
	Suggest func(key string) string
}

// Adapt converts the servers of root, a host's file, to mcpbridge's keys. Nodes keep the
// lines of the file. Adapt does not check values.
func (h *Host) Adapt(root *yaml.Node, o Options) (*yaml.Node, []Note) {
	a := &adapter{host: h, o: o, names: make(map[string]bool)}
	a.predefine()
	servers := mapping(root.Line)
	var rest []pair
	for _, kv := range pairs(root) {
		if !isTable(kv.name()) {
			rest = append(rest, kv)
			continue
		}
		servers.Line = kv.key.Line
		if kv.value.Kind != yaml.MappingNode {
			return withServers(kv.key.Line, kv.value), a.notes
		}
		a.table(servers, kv.value)
	}
	a.others(servers, rest)
	slices.SortStableFunc(a.notes, func(x, y Note) int { return cmp.Compare(x.Line, y.Line) })
	return withServers(servers.Line, servers), a.notes
}

func withServers(line int, servers *yaml.Node) *yaml.Node {
	root := mapping(line)
	root.Content = append(root.Content, text("servers", line), servers)
	return root
}

// An adapter reads one file.
type adapter struct {
	host  *Host
	o     Options
	notes []Note
	names map[string]bool // the names of the servers
	vars  map[string]string
	// folder is the project's folder for a project's file, or else that of the file.
	folder string
	// elsewhere says that the current folder is used for ${workspaceFolder}.
	elsewhere bool
}

func (a *adapter) note(n *yaml.Node, path []string, format string, args ...any) {
	a.notes = append(a.notes, Note{n.Line, slices.Clone(path), fmt.Sprintf(format, args...)})
}

// table adds the servers of from to into.
func (a *adapter) table(into, from *yaml.Node) {
	for _, kv := range pairs(from) {
		if Name(kv.name()) == kv.name() {
			a.names[kv.name()] = true // reserved: no other name may be changed to it
		}
	}
	for _, kv := range pairs(from) {
		name := Name(kv.name())
		if a.ofExtension(kv.value) {
			a.note(kv.key, []string{"servers", name}, "is left out: an extension of %s knows how it is started, and its file does not", a.host.Title)
			continue
		}
		if name != kv.name() {
			name = a.unused(name)
		}
		if name != kv.name() {
			a.note(kv.key, []string{"servers", name}, "is called %q by the host; a name here is part of an endpoint's path", kv.name())
		}
		a.names[name] = true
		s := &server{adapter: a, from: kv.value, out: kv.value, path: []string{"servers", name}}
		if kv.value.Kind == yaml.MappingNode {
			s.read()
		}
		into.Content = append(into.Content, text(name, kv.key.Line), s.out)
	}
}

// unused returns name, or a similar one that no server has.
func (a *adapter) unused(name string) string {
	for i, base := 2, name; a.names[name]; i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	return name
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+|^[._-]+`)

// Name converts s to a valid name of an endpoint.
func Name(s string) string {
	name := strings.Trim(notInNames.ReplaceAllString(s, "-"), "-._")
	if name == "" {
		return "server"
	}
	return strings.TrimRight(name[:min(len(name), 64)], "-._")
}

// others reads the other settings of a host's file.
func (a *adapter) others(servers *yaml.Node, rest []pair) {
	var passed []string
	line := 0
	for _, kv := range rest {
		switch {
		case kv.name() == "inputs" && kv.value.Kind == yaml.SequenceNode:
			a.inputs(kv)
		case kv.name() == "projects" && a.host == claudeCode:
			a.projects(servers, kv)
		case kv.name() == "mcp" && a.host == gemini:
			a.allowed(servers, kv)
		case kv.name() == "$schema":
		case kv.name() == "sandbox":
			a.note(kv.key, []string{kv.name()}, "%s", noSandbox)
		default:
			passed, line = append(passed, kv.name()), cmp.Or(line, kv.key.Line)
		}
	}
	if len(passed) > 0 {
		a.notes = append(a.notes, Note{line, nil, "settings of " + a.host.Title + " have no effect here: " + some(passed)})
	}
}

// some returns the first few words, and the number of others.
func some(words []string) string {
	if n := len(words) - 6; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:6], ", "), n)
	}
	return strings.Join(words, ", ")
}

// inputs adds a note with the environment variables that replace a host's inputs.
func (a *adapter) inputs(kv pair) {
	var vars []string
	for _, in := range kv.value.Content {
		if id := valueOf(in, "id"); id != nil {
			vars = append(vars, InputVariable(id.Value))
		}
	}
	if len(vars) > 0 {
		a.note(kv.key, []string{kv.name()}, "%s asks the user for these; mcpbridge takes them from the environment: %s", a.host.Title, strings.Join(vars, ", "))
	}
}

var notInVariables = regexp.MustCompile(`[^A-Z0-9]+`)

// InputVariable returns the environment variable for ${input:id}. Its prefix avoids names
// that have another purpose.
func InputVariable(id string) string {
	return "INPUT_" + strings.Trim(notInVariables.ReplaceAllString(strings.ToUpper(id), "_"), "_")
}

// projects adds the servers that Claude Code has for the current folder only.
func (a *adapter) projects(servers *yaml.Node, kv pair) {
	var elsewhere []string
	for _, p := range pairs(kv.value) {
		table := valueOf(p.value, "mcpServers")
		if len(pairs(table)) == 0 {
			continue
		}
		if filepath.Clean(p.name()) != a.o.Here {
			elsewhere = append(elsewhere, p.name())
			continue
		}
		for _, s := range pairs(table) {
			a.override(servers, s)
		}
		a.table(servers, table)
	}
	if len(elsewhere) > 0 {
		a.note(kv.key, []string{kv.name()}, "the servers of other folders than the current one are left out: %s", some(elsewhere))
	}
}

// override removes a server of the user if the project has one of the same name.
func (a *adapter) override(servers *yaml.Node, by pair) {
	for i := 0; i+1 < len(servers.Content); i += 2 {
		if servers.Content[i].Value == by.name() {
			a.note(servers.Content[i], []string{"servers", by.name()}, "is left out for the one of the current folder, on line %d", by.key.Line)
			servers.Content = slices.Delete(servers.Content, i, i+2)
			return
		}
	}
}

// allowed disables the servers that Gemini's mcp.allowed and mcp.excluded exclude.
func (a *adapter) allowed(servers *yaml.Node, kv pair) {
	allowed, excluded := valueOf(kv.value, "allowed"), valueOf(kv.value, "excluded")
	for _, s := range pairs(servers) {
		out := excluded != nil && holds(excluded, s.name()) || allowed != nil && !holds(allowed, s.name())
		if out && valueOf(s.value, "disabled") == nil && s.value.Kind == yaml.MappingNode {
			s.value.Content = append(s.value.Content, text("disabled", kv.key.Line), scalar("!!bool", "true", kv.key.Line))
			a.note(kv.key, []string{kv.name()}, "keeps %s out, which is disabled here, too", s.name())
		}
	}
}

func holds(list *yaml.Node, word string) bool {
	return slices.ContainsFunc(list.Content, func(n *yaml.Node) bool { return n.Value == word })
}

func mapping(line int) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: line}
}

func text(s string, line int) *yaml.Node { return scalar("!!str", s, line) }

func scalar(tag, value string, line int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value, Line: line}
}
