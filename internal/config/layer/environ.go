package layer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
	"go.yaml.in/yaml/v3"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
)

// Prefix is the prefix of environment variables that set a key.
const Prefix = "MCPBRIDGE_"

// environ reads MCPBRIDGE_…: two underscores separate levels, so
// MCPBRIDGE_SERVERS__DOCS__URL sets servers.docs.url. Lists are YAML. Variables in values
// are not expanded: a shell would have done that.
// Those of servers are added to servers, by their paths.
func (r *reader) environ(servers map[string]any) koanf.Provider {
	return env.Provider(key.Delim, env.Opt{
		Prefix:      Prefix,
		EnvironFunc: func() []string { return r.Environ },
		TransformFunc: func(name, value string) (string, any) {
			path, k := resolve(r.keys, strings.Split(strings.TrimPrefix(name, Prefix), "__"), &r.given)
			at := key.Place{Source: name}
			if k == nil {
				// Only a warning: Kubernetes sets variables such as MCPBRIDGE_PORT for
				// a Service named mcpbridge.
				r.rep.WarnAt(at, "", "names no key of the configuration and has no effect; levels are separated by __")
				return "", nil
			}
			if path == includeKey {
				r.rep.FailAt(at, path, "can't be set by the environment; write it into the file")
				return "", nil
			}
			n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
			if k.Kind == key.List {
				if n = parseList(value); n == nil {
					r.rep.FailAt(at, path, "want a list, as in [a, b]")
					return "", nil
				}
			}
			w := r.walker(name)
			w.private = true
			v, ok := w.value(n, k, path)
			if !ok {
				return "", nil
			}
			if isOfServer(path) {
				for p := key.Parent(path); p != serversKey && p != "" && !r.rep.Written(p); p = key.Parent(p) {
					r.rep.Places[p] = at
				}
				servers[path] = v
				return "", nil
			}
			return path, v
		},
	})
}

func parseList(value string) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(value), &doc); err != nil || len(doc.Content) != 1 {
		return nil
	}
	return doc.Content[0]
}

// resolve finds the key at a path of levels, ignoring case and punctuation. If given already
// has a name that the user chose, its spelling is used, so that AUTHORIZATION overrides the
// file's Authorization instead of adding a second header. The key is nil if there is none, or
// if it contains other keys.
func resolve(keys *key.Key, levels []string, given *Given) (path string, k *key.Key) {
	k = keys
	for _, level := range levels {
		if level == "" {
			return "", nil
		}
		var name string
		at := given.at(path)
		if _, isList := at.([]any); isList {
			return "", nil // a variable sets a key of the only one
		}
		there, _ := at.(map[string]any)
		name, k = child(k, level, there)
		if k == nil {
			return "", nil
		}
		path = key.Join(path, name)
	}
	if k.Short != "" {
		path, k = key.Join(path, k.Short), k.ByName[k.Short]
	}
	if k.Kind == key.Group || k.Kind == key.Table || k.Kind == key.Dict && len(k.Words) == 0 {
		return "", nil
	}
	return path, k
}

// child returns the key below k with the name level; there has the names that the user has
// chosen so far.
func child(k *key.Key, level string, there map[string]any) (string, *key.Key) {
	if k.Kind == key.List && k.Single && k.Each.Kind == key.Group {
		k = k.Each // a group stands for a list of one
	}
	switch k.Kind {
	case key.Group:
		if name, ok := folded(level, k.Spelled()); ok {
			return k.ByName[name].Name, k.ByName[name]
		}
	case key.Table:
		name, ok := folded(level, append(slices.Sorted(maps.Keys(there)), k.Names...))
		if !ok && len(k.Names) > 0 {
			return "", nil
		}
		return cmp.Or(name, strings.ToLower(level)), k.Each
	case key.Dict:
		if name, ok := folded(level, append(slices.Sorted(maps.Keys(there)), k.Names...)); ok {
			return name, k.Each
		}
		return level, k.Each
	}
	return "", nil
}

// folded finds the name that equals level, ignoring case and punctuation.
func folded(level string, names []string) (string, bool) {
	i := slices.IndexFunc(names, func(n string) bool { return fold(n) == fold(level) })
	if i < 0 {
		return "", false
	}
	return names[i], true
}

func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-./", r) {
			return '_'
		}
		return r
	}, strings.ToLower(s))
}
