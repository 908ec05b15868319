package layer

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

// unquoted says what may have made keys of a text.
func unquoted(n *yaml.Node) string {
	if n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0 || len(n.Content) == 2 {
		return "; a text with \": \" in it wants quotes"
	}
	return ""
}

// scalar expands the variables in n, and reads it as a value of k.
func (w *walker) scalar(n *yaml.Node, k *key.Key, path string) (any, bool) {
	if n.Kind != yaml.ScalarNode {
		w.rep.FailAt(w.place(n), path, "want a single value; found %s%s", describe(n), unquoted(n))
		return nil, false
	}
	if n.Tag == "!!null" {
		w.rep.FailAt(w.place(n), path, "has no value; remove the key, or write \"\" for an empty one")
		return nil, false
	}
	s := n.Value
	if w.scope != nil {
		expanded, err := w.noting(k, path).Expand(s)
		if err != nil {
			if !w.disabled {
				w.rep.FailAt(w.place(n), path, "%v", err)
			}
			return nil, false
		}
		s = expanded
	}
	v, problem := k.Read(s, w.quote(n))
	if problem != "" {
		w.rep.FailAt(w.place(n), path, "%s", problem)
		return nil, false
	}
	return v, true
}

// noting returns the scope with a note that collects the names of variables, and values which
// may be secrets of k, and files that values come from.
func (w *walker) noting(k *key.Key, path string) *value.Scope {
	sc := *w.scope
	sc.Note = func(variable, text string) {
		if variable != "" {
			w.rep.Variables = append(w.rep.Variables, variable)
		}
		if k.Secret && !value.IsCommonVariable(variable) {
			w.rep.Expanded = append(w.rep.Expanded, text)
		}
	}
	sc.Opened = func(file string) {
		if w.scope.Opened != nil {
			w.scope.Opened(file)
		}
		if !w.disabled {
			w.rep.FromFiles = append(w.rep.FromFiles, key.FromFile{Path: path, File: file})
		}
	}
	return &sc
}

// quote returns n as messages show it: as it was written, never expanded.
func (w *walker) quote(n *yaml.Node) string {
	if w.private {
		return "the value"
	}
	if len(n.Value) > 40 {
		return strconv.Quote(n.Value[:40]) + "…"
	}
	return strconv.Quote(n.Value)
}
