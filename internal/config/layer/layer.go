// Package layer reads the layers of a configuration, defaults aside: files, servers of the
// command line, the environment and flags.
//
// Each layer is checked against the same tree of keys, of which a few are known here by name:
// those of servers, which also stand in files of desktop clients, and include.
package layer

import (
	"fmt"
	"strings"

	"github.com/knadh/koanf/maps"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

// Options are the sources of the layers.
type Options struct {
	// Path is the file to read, YAML or JSON; empty for none.
	Path string
	// CommandLine is what the command line says apart from flags, as a file would have it;
	// nil for nothing.
	CommandLine *yaml.Node
	// Environ contains KEY=VALUE entries.
	Environ []string
	// Flags override all other sources. FlagKeys has the key of each flag that sets one, none
	// of a server, levels separated by dots. Flags may be nil.
	Flags    *pflag.FlagSet
	FlagKeys map[string]string
}

// Given is what the layers have.
type Given struct {
	// Koanf has all but the servers. It copies, flattens and indexes all that it has whenever
	// something is added, which takes long if there are many.
	*koanf.Koanf
	// Servers has the keys of each server, by its name.
	Servers map[string]any
	// Order has the names of servers in the order of the files.
	Order []string
}

// serversKey is the key of all servers.
const serversKey = "servers"

// isOfServer reports whether a path is that of a key of a server.
func isOfServer(path string) bool { return strings.HasPrefix(path, serversKey+key.Delim) }

// at returns what the layers have at a path, which is not to be changed; nil for nothing.
func (g *Given) at(path string) any {
	switch {
	case path == "":
		return nil // all of it: nobody asks for that
	case path == serversKey:
		return g.Servers
	case isOfServer(path):
		return maps.Search(g.Servers, strings.Split(path, key.Delim)[1:])
	}
	return g.Get(path)
}

// add adds what a layer has, from which the servers are taken.
func (g *Given) add(layer map[string]any) error {
	if servers, ok := layer[serversKey].(map[string]any); ok {
		maps.Merge(servers, g.Servers)
	}
	delete(layer, serversKey)
	return g.Load(confmap.Provider(layer, ""), nil)
}

// A reader reads layers, one after another.
type reader struct {
	Options
	keys  *key.Key // all that there are
	rep   *key.Report
	given Given
}

// Read reads all layers. The error is that of reading the file; mistakes go to rep.
func Read(o Options, keys *key.Key, rep *key.Report) (*Given, error) {
	r := &reader{o, keys, rep, Given{Koanf: koanf.New(key.Delim), Servers: make(map[string]any)}}
	if o.Path != "" {
		if err := r.files(); err != nil {
			return nil, err
		}
	}
	if o.CommandLine != nil {
		if err := r.add(r.walker("command line"), o.CommandLine); err != nil {
			return nil, err
		}
	}
	ofServers := make(map[string]any)
	if err := r.given.Load(r.environ(ofServers), nil); err != nil {
		return nil, fmt.Errorf("reading the environment: %v", err)
	}
	if err := r.given.add(maps.Unflatten(ofServers, key.Delim)); err != nil {
		return nil, fmt.Errorf("reading the environment: %v", err)
	}
	if o.Flags != nil {
		if err := r.given.Load(r.flags(), nil); err != nil {
			return nil, fmt.Errorf("reading flags: %v", err)
		}
	}
	return &r.given, nil
}

// files adds the file, and those that it includes.
func (r *reader) files() error {
	root, in, err := readFile(r.Path, r.rep)
	if err != nil {
		return err
	}
	if err := r.add(r.fileWalker(r.Path), r.adapted(r.Path, root, in)); err != nil {
		return err
	}
	return r.include()
}

func (r *reader) walker(where string) *walker {
	return &walker{rep: r.rep, keys: r.keys, where: where}
}

func (r *reader) fileWalker(path string) *walker {
	w := r.walker(path)
	w.file, w.scope = true, r.scope(path)
	return w
}

// scope returns what references of a file are resolved by.
func (r *reader) scope(path string) *value.Scope {
	return value.ScopeOf(path, r.Environ, r.rep)
}

// add adds what w finds below root, in mcpbridge's keys.
func (r *reader) add(w *walker, root *yaml.Node) error {
	r.given.Order = append(r.given.Order, serverNames(root)...)
	v, ok := w.value(root, r.keys, "")
	if !ok {
		return nil // reported
	}
	return r.given.add(v.(map[string]any))
}
