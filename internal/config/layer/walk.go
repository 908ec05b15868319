package layer

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

// A walker checks the YAML of one layer against the tree of keys, and converts it to values of the
// kinds of the keys.
type walker struct {
	rep  *key.Report
	keys *key.Key // all that there are
	// where names the layer; for a file the line is added.
	where string
	file  bool
	// scope expands variables; nil leaves ${…} alone.
	scope *value.Scope
	// private: the values are never shown, because environment variables are often
	// secrets.
	private bool
	// disabled is set below a disabled server, whose variables may be missing.
	disabled bool
	// includedBy is the file that includes this one; empty for a layer that was not included.
	includedBy string
}

func (w *walker) place(n *yaml.Node) key.Place {
	at := key.Place{Source: w.where, Text: n.Value}
	if w.file {
		at.Line, at.Column = n.Line, n.Column
	}
	return at
}

// value checks n as a value of k, and converts it. ok is false if there is a mistake, which
// it reports.
func (w *walker) value(n *yaml.Node, k *key.Key, path string) (v any, ok bool) {
	// The tree's depth bounds the walk, so an alias that contains itself
	// can't make it endless.
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if _, seen := w.rep.Places[path]; !seen || !w.file {
		w.rep.Places[path] = w.place(n)
	}
	switch k.Kind {
	case key.Group:
		return w.group(n, k, path)
	case key.Table:
		return w.table(n, k, path)
	case key.List:
		return w.list(n, k, path)
	case key.Dict:
		return w.dict(n, k, path)
	}
	return w.scalar(n, k, path)
}

func (w *walker) group(n *yaml.Node, k *key.Key, path string) (any, bool) {
	if isWord(n, k) {
		return map[string]any{key.Word: n.Value}, true
	}
	n = written(n, k)
	out := make(map[string]any)
	set := make(map[string]string) // name to the spelling used
	ok := w.pairs(n, k, path, func(name string, kn, vn *yaml.Node) {
		f, known := k.ByName[name]
		if !known {
			w.unknown(kn, k, path)
			return
		}
		if before, twice := set[f.Name]; twice {
			w.rep.FailAt(w.place(kn), key.Join(path, name), "means the same as %s, which is also set; remove one of them", before)
			return
		}
		set[f.Name] = name
		here := key.Join(path, f.Name)
		if w.taken(kn, here) {
			return
		}
		at := w.place(kn)
		at.Text = vn.Value
		w.rep.Places[here] = at
		if v, ok := w.value(vn, f, here); ok {
			out[f.Name] = v
		}
	})
	return out, ok
}

// written returns a group that one value stands for as the group that is meant.
func written(n *yaml.Node, k *key.Key) *yaml.Node {
	if k.Short == "" || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return n
	}
	name := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: k.Short, Line: n.Line}
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{name, n}, Line: n.Line}
}

// isWord reports whether n is a word that stands for a group or a dict.
func isWord(n *yaml.Node, k *key.Key) bool {
	return n.Kind == yaml.ScalarNode && slices.Contains(k.Words, n.Value)
}

func (w *walker) table(n *yaml.Node, k *key.Key, path string) (any, bool) {
	out := make(map[string]any)
	ok := w.pairs(n, k, path, func(name string, kn, vn *yaml.Node) {
		here := key.Join(path, name)
		if w.taken(kn, here) {
			return
		}
		w.rep.Places[here] = w.place(kn)
		if w.misnamed(kn, k, here) {
			return
		}
		w.disabled = w.disabled || isDisabled(vn)
		if v, ok := w.value(vn, k.Each, here); ok {
			out[name] = v
		}
		w.disabled = w.disabled && path != "servers"
	})
	return out, ok
}

// misnamed reports whether k can't have the name of kn, after it has reported the mistake.
func (w *walker) misnamed(kn *yaml.Node, k *key.Key, here string) bool {
	if len(k.Names) == 0 || slices.Contains(k.Names, kn.Value) {
		return false
	}
	w.rep.FailAt(w.place(kn), here, "unknown name; %s", key.Suggest(kn.Value, k.Names))
	return true
}

func (w *walker) list(n *yaml.Node, k *key.Key, path string) (any, bool) {
	if k.Single && k.Each.Kind == key.Group && n.Kind != yaml.SequenceNode {
		return w.single(n, k, path)
	}
	if k.Single && n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		n = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{n}}
	}
	if n.Kind != yaml.SequenceNode {
		w.rep.FailAt(w.place(n), path, "want a list, as in [a, b]; found %s", describe(n))
		return nil, false
	}
	out := make([]any, 0, len(n.Content))
	for i, item := range n.Content {
		v, ok := w.value(item, k.Each, key.Join(path, strconv.Itoa(i)))
		if given, isGroup := v.(map[string]any); ok && isGroup {
			v = filled(given, k.Each.Defaults(given))
		}
		if ok {
			out = append(out, v)
		}
	}
	return out, true
}

// single checks a group that stands for a list of one. It stays a group, so that a later layer
// can set keys in it.
func (w *walker) single(n *yaml.Node, k *key.Key, path string) (any, bool) {
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		w.rep.FailAt(w.place(n), path, "want keys with values below it, as in {key: value}, or a list of such; found %s", describe(n))
		return nil, false
	}
	v, ok := w.group(n, k.Each, path)
	if given, isGroup := v.(map[string]any); ok && isGroup {
		return filled(given, k.Each.Defaults(given)), true
	}
	return nil, false
}

// filled returns given with the defaults of what it lacks.
func filled(given, defaults map[string]any) map[string]any {
	for name, def := range defaults {
		v, ok := given[name]
		below, isGroup := v.(map[string]any)
		switch further, isDefaults := def.(map[string]any); {
		case !ok:
			given[name] = def
		case isGroup && isDefaults:
			given[name] = filled(below, further)
		}
	}
	return given
}

func (w *walker) dict(n *yaml.Node, k *key.Key, path string) (any, bool) {
	if isWord(n, k) {
		return map[string]any{key.Word: n.Value}, true
	}
	out := make(map[string]any)
	ok := w.pairs(n, k, path, func(name string, kn, vn *yaml.Node) {
		here := key.Join(path, name)
		if w.misnamed(kn, k, here) {
			return
		}
		if v, ok := w.value(vn, k.Each, here); ok {
			out[name] = v
		}
	})
	return out, ok
}

// pairs calls f for each key and value of n, once per key. A missing value is an empty
// mapping, so that `servers:` is valid if everything below it is a comment.
func (w *walker) pairs(n *yaml.Node, k *key.Key, path string, f func(name string, kn, vn *yaml.Node)) bool {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return true
	}
	if n.Kind != yaml.MappingNode {
		instead := ""
		if len(k.Words) > 0 {
			instead = ", or " + key.Either(k.Words)
		}
		if k.Short != "" {
			instead = ", or a single value"
		}
		w.rep.FailAt(w.place(n), path, "want keys with values below it, as in {key: value}%s; found %s", instead, describe(n))
		return false
	}
	lines := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		kn, vn := n.Content[i], n.Content[i+1]
		switch before, twice := lines[kn.Value]; {
		case kn.Kind != yaml.ScalarNode:
			w.rep.FailAt(w.place(kn), path, "a key must be a word; found %s", describe(kn))
		case kn.Tag == "!!merge":
			w.rep.FailAt(w.place(kn), path, "YAML's << is not supported; repeat the keys, or use an anchor for a whole value")
		case twice:
			w.rep.FailAt(w.place(kn), key.Join(path, kn.Value), "is a duplicate of the key on line %d; remove or rename one of them", before)
		default:
			lines[kn.Value] = kn.Line
			f(kn.Value, kn, vn)
		}
	}
	return true
}

// unknown reports a key that is not a field of k.
func (w *walker) unknown(kn *yaml.Node, k *key.Key, path string) {
	at, here, name := w.place(kn), key.Join(path, kn.Value), kn.Value
	isTop := path == ""
	isServer := key.Parent(path) == "servers"
	switch {
	case (isTop || isServer) && slices.Contains(Foreign, name):
		w.rep.WarnAt(at, here, "belongs to desktop clients and has no effect here")
	case isServer && instead[name] != "":
		w.rep.FailAt(at, here, "belongs to desktop clients' files; write %s", instead[name])
	case isTop && slices.Contains(serverKey(w.keys).Spelled(), name):
		w.rep.FailAt(at, here, "belongs to a server; move it below servers and the server's name")
	default:
		w.rep.FailAt(at, here, "unknown key; %s", key.Suggest(name, k.Spelled()))
	}
}

// isDisabled reports whether n, a server, says `disabled: true`.
func isDisabled(n *yaml.Node) bool {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "disabled" {
			return strings.EqualFold(n.Content[i+1].Value, "true")
		}
	}
	return false
}

func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys with values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	}
	return "a single value"
}
