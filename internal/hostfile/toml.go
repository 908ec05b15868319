package hostfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

// A tomlFile is a file in TOML, with the place of everything that is set in it.
type tomlFile struct {
	data     []byte
	settings []*setting            // those at the margin, with the headers of tables, in order
	root     *yaml.Node            // the values
	starts   []int                 // the offset of each line
	nodes    map[string]*yaml.Node // of root, by their paths
}

// A setting is a key with its value, or the header of a table.
type setting struct {
	path   []string // from the top of the file
	keys   []int    // where each part of the key begins that is written here
	header bool
	// from is where it begins, value where its value begins, and to where it ends.
	from, value, to int
	node            *yaml.Node // the value; nil for a header
	items           []int      // where the texts of a list begin; negative for what is no text
	inner           []*setting // of an inline table
	within          *setting   // the inline table that it is in; nil at the margin
}

// codexTable is the table of the servers.
const codexTable = "mcp_servers"

// parseTOML reads a file. The error is a [*SyntaxError].
func parseTOML(data []byte) (*tomlFile, error) {
	text := data
	if bytes.HasPrefix(data, byteOrderMark) {
		text = slices.Concat([]byte("   "), data[len(byteOrderMark):])
	}
	var all any // the parser below does not see what is there twice
	if err := toml.Unmarshal(text, &all); err != nil {
		e := &SyntaxError{Format: "TOML", Why: strings.TrimPrefix(err.Error(), "toml: ")}
		if d := (*toml.DecodeError)(nil); errors.As(err, &d) {
			e.Line, e.Column = d.Position()
		}
		return nil, e
	}
	f := &tomlFile{data: text, root: mapping(1), starts: lineStarts(text), nodes: make(map[string]*yaml.Node)}
	f.read()
	f.data = data
	return f, nil
}

// read reads what was checked before.
func (f *tomlFile) read() {
	p := &unstable.Parser{}
	p.Reset(f.data)
	var table []string
	list := false // the table is one of a list
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind == unstable.KeyValue {
			s := f.setting(e, table, nil)
			f.settings = append(f.settings, s)
			if !list {
				f.put(s.path, s)
			}
			continue
		}
		s := f.headerOf(e)
		f.settings = append(f.settings, s)
		table, list = s.path, e.Kind == unstable.ArrayTable
		f.put(s.path, s)
	}
}

// headerOf reads [a.b] or [[a.b]].
func (f *tomlFile) headerOf(e *unstable.Node) *setting {
	s := &setting{header: true}
	end := f.key(s, e.Key())
	s.from = bytes.LastIndexByte(f.data[:s.keys[0]], '\n') + 1
	s.from += bytes.IndexByte(f.data[s.from:], '[')
	s.to = end + bytes.IndexByte(f.data[end:], ']') + 1
	if e.Kind == unstable.ArrayTable {
		s.to++
	}
	return s
}

// key reads a key, and returns where it ends.
func (f *tomlFile) key(s *setting, parts unstable.Iterator) (end int) {
	for parts.Next() {
		k := parts.Node()
		s.path = append(s.path, string(k.Data))
		s.keys = append(s.keys, int(k.Raw.Offset))
		end = int(k.Raw.Offset + k.Raw.Length)
	}
	return end
}

// setting reads a key and its value, below a table.
func (f *tomlFile) setting(e *unstable.Node, table []string, within *setting) *setting {
	s := &setting{path: slices.Clone(table), within: within, from: int(e.Raw.Offset), to: int(e.Raw.Offset + e.Raw.Length)}
	end := f.key(s, e.Key())
	s.value = end + bytes.IndexByte(f.data[end:], '=') + 1
	s.value += len(f.data[s.value:]) - len(bytes.TrimLeft(f.data[s.value:], " \t"))
	s.node = f.valueOf(e.Value(), s)
	s.node.Line = f.line(s.value)
	return s
}

func (f *tomlFile) line(offset int) int { return (&tree{starts: f.starts}).line(offset) }

// valueOf reads the value of a setting, or one in a list of it.
func (f *tomlFile) valueOf(v *unstable.Node, of *setting) *yaml.Node {
	line := f.line(of.value)
	switch v.Kind {
	case unstable.Array:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: line}
		for it := v.Children(); it.Next(); {
			item, at := f.valueOf(it.Node(), &setting{path: of.path, value: of.value}), -1
			if item.Kind == yaml.ScalarNode {
				at = int(it.Node().Raw.Offset)
				item.Line = f.line(at)
			}
			n.Content, of.items = append(n.Content, item), append(of.items, at)
		}
		return n
	case unstable.InlineTable:
		n := mapping(line)
		for it := v.Children(); it.Next(); {
			s := f.setting(it.Node(), of.path, of)
			of.inner = append(of.inner, s)
			putInline(n, s.path[len(of.path):], s.node, f.line(s.from))
		}
		return n
	}
	return scalar(tomlTag(v.Kind), string(v.Data), line)
}

func tomlTag(k unstable.Kind) string {
	switch k {
	case unstable.Bool:
		return "!!bool"
	case unstable.Integer:
		return "!!int"
	case unstable.Float:
		return "!!float"
	}
	return "!!str"
}

// put adds a setting to the values. Of settings that are not of servers, nobody asks the value.
func (f *tomlFile) put(path []string, s *setting) {
	line := f.line(s.from)
	if path[0] != codexTable {
		f.below(f.root, path[:1], func() *yaml.Node { return scalar("!!null", "", line) }, line)
		return
	}
	n := f.root
	for i := range path {
		value := func() *yaml.Node { return mapping(line) }
		if i == len(path)-1 && !s.header {
			value = func() *yaml.Node { return s.node }
		}
		if n = f.below(n, path[:i+1], value, line); n.Kind != yaml.MappingNode {
			return
		}
	}
}

// below returns what a path leads to, whose last part is below n; the value if there is nothing.
func (f *tomlFile) below(n *yaml.Node, path []string, value func() *yaml.Node, line int) *yaml.Node {
	key := strings.Join(path, "\x00")
	found := f.nodes[key]
	if found == nil {
		found = value()
		f.nodes[key] = found
		n.Content = append(n.Content, text(path[len(path)-1], line), found)
	}
	return found
}

// putInline sets a value in an inline table.
func putInline(n *yaml.Node, path []string, value *yaml.Node, line int) {
	for _, name := range path[:len(path)-1] {
		below := valueOf(n, name)
		if below == nil {
			below = mapping(line)
			n.Content = append(n.Content, text(name, line), below)
		}
		n = below
	}
	n.Content = append(n.Content, text(path[len(path)-1], line), value)
}

// A tomlServer is what a file has of one server.
type tomlServer struct {
	file  *tomlFile
	name  string
	parts []*setting // with those in inline tables
	whole []*setting // the outermost of them
	node  *yaml.Node
}

// servers returns the servers in the order of the file.
func (f *tomlFile) servers() (all []*tomlServer) {
	byName := make(map[string]*tomlServer)
	var visit func(s *setting, outer bool)
	visit = func(s *setting, outer bool) {
		if s.path[0] != codexTable {
			return
		}
		if len(s.path) > 1 {
			server := byName[s.path[1]]
			if server == nil {
				server = &tomlServer{file: f, name: s.path[1], node: f.serverOf(s.path[1])}
				byName[server.name] = server
				all = append(all, server)
			}
			server.parts = append(server.parts, s)
			if outer {
				server.whole = append(server.whole, s)
			}
		}
		for _, in := range s.inner {
			visit(in, outer && len(s.path) == 1)
		}
	}
	for _, s := range f.settings {
		visit(s, true)
	}
	return all
}

// at returns the setting of a server with the given key, or nil.
func (s *tomlServer) at(key string) *setting {
	for _, p := range s.parts {
		if !p.header && len(p.path) == 3 && p.path[2] == key {
			return p
		}
	}
	return nil
}

// below returns the settings and headers of a key and of what is below it, the outermost ones.
func (s *tomlServer) below(key string) (found []*setting) {
	for _, p := range s.parts {
		if len(p.path) > 2 && p.path[2] == key && (p.within == nil || len(p.within.path) < 3) {
			found = append(found, p)
		}
	}
	return found
}

// tomlEntries returns the servers of a file, with their values as JSON has them.
func tomlEntries(f *tomlFile) (out []*entry) {
	for _, s := range f.servers() {
		en := &entry{path: codexTable + "\x00" + s.name, name: s.name, toml: s}
		for _, p := range s.whole {
			en.text = append(append(en.text, f.data[p.from:p.to]...), '\n')
		}
		if v, err := hujson.Parse(jsonOf(s.node)); err == nil {
			en.object, _ = v.Value.(*hujson.Object)
		}
		out = append(out, en)
	}
	return out
}

// jsonOf returns a value as JSON. What JSON has no words for is a text.
func jsonOf(n *yaml.Node) []byte {
	var parts [][]byte
	switch {
	case n == nil:
		return []byte("null")
	case n.Kind == yaml.MappingNode:
		for _, kv := range pairs(n) {
			parts = append(parts, slices.Concat(hujson.String(kv.name()), []byte(":"), jsonOf(kv.value)))
		}
		return slices.Concat([]byte("{"), bytes.Join(parts, []byte(",")), []byte("}"))
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			parts = append(parts, jsonOf(item))
		}
		return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
	case n.Tag != "!!str" && json.Valid([]byte(n.Value)):
		return []byte(n.Value)
	}
	return hujson.String(n.Value)
}
