package config

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/mcpbridge/mcpbridge/internal/config/expand"
	"github.com/mcpbridge/mcpbridge/internal/config/keypath"
	"github.com/mcpbridge/mcpbridge/internal/config/problem"
	"github.com/mcpbridge/mcpbridge/internal/hosts"
)

// besideServers are the other top-level keys of VS Code's file.
var besideServers = []string{"$schema", "inputs", "sandbox"}

// isHosts reports whether a JSON file belongs to an MCP host, and was not written for
// mcpbridge. In a host's file unknown keys are warnings, because the host may know more keys
// than mcpbridge does. In mcpbridge's own files they are errors.
//
// A host's file has mcpServers, and no key of mcpbridge at the top level. VS Code's file has
// servers and its own keys, and no server has a key that only mcpbridge has. YAML is always
// mcpbridge's.
func isHosts(root *yaml.Node) bool {
	top := keysIn(root)
	if slices.Contains(top, "mcpServers") {
		return !slices.ContainsFunc(top, func(name string) bool {
			return name != "mcpServers" && schema.byName[name] != nil
		})
	}
	for i, name := range top {
		switch {
		case name == "servers" && hasOurs(root.Content[2*i+1]):
			return false
		case name != "servers" && !slices.Contains(besideServers, name):
			return false
		}
	}
	return slices.Contains(top, "servers")
}

// hasOurs reports whether a server of the table has a key that no host has. Other spellings
// of mcpbridge's keys belong to hosts.
func hasOurs(table *yaml.Node) bool {
	for i := 1; i < len(table.Content); i += 2 {
		for _, name := range keysIn(table.Content[i]) {
			if k := serverKey.byName[name]; k != nil && k.name == name && !k.hosts && name != hostsAuth {
				return true
			}
		}
	}
	return false
}

func keysIn(n *yaml.Node) []string {
	var names []string
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		names = append(names, n.Content[i].Value)
	}
	return names
}

// adapt converts a host's file to mcpbridge's keys. It warns of keys that have another
// meaning here, or none.
func adapt(root *yaml.Node, o Options, rep *problem.Report) *yaml.Node {
	out, notes := hosts.Guess(o.Path, root).Adapt(root, hostOptions(o.Path, o.Environ))
	for _, n := range notes {
		at := problem.InFile(o.Path, n.Line)
		path := ""
		for _, name := range n.Path {
			path = keypath.Join(path, name)
		}
		rep.WarnAt(at, path, "%s", n.Text)
	}
	return out
}

// hostsAuth is a key that we have, too: hosts have below it how they log in to a server.
const hostsAuth = "auth"

func hostOptions(path string, environ []string) hosts.Options {
	return hosts.Options{
		Machine: ThisMachine(environ),
		Path:    path,
		Keys:    slices.DeleteFunc(serverKeys(), func(name string) bool { return name == hostsAuth }),
		Suggest: func(name string) string { return problem.Suggest(name, serverKeys()) },
	}
}

// ThisMachine returns the directories in which hosts keep their files.
func ThisMachine(environ []string) hosts.Machine {
	lookup := expand.Environ(environ)
	m := hosts.Machine{OS: runtime.GOOS}
	home, config := "HOME", "XDG_CONFIG_HOME"
	if m.OS == "windows" {
		home, config = "USERPROFILE", "APPDATA"
	}
	m.Home, _ = lookup(home)
	m.AppData, _ = lookup(config)
	if here, err := os.Getwd(); err == nil {
		m.Here = filepath.Clean(here)
	}
	return m
}
