package layer

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

// besideServers are the other top-level keys of VS Code's file.
var besideServers = []string{"$schema", "inputs", "sandbox"}

// isHosts reports whether a file in JSON belongs to an MCP host, and was not written for
// mcpbridge. In a host's file unknown keys are warnings, because the host may know more keys
// than mcpbridge does. In mcpbridge's own files they are errors.
//
// A host's file has mcpServers, and no key of mcpbridge at the top level. VS Code's file has
// servers and its own keys, and no server has a key that only mcpbridge has. YAML is always
// mcpbridge's.
func isHosts(root *yaml.Node, keys *key.Key) bool {
	top := keysIn(root)
	if slices.Contains(top, "context_servers") {
		return true // Zed's
	}
	if slices.Contains(top, "mcpServers") {
		return !slices.ContainsFunc(top, func(name string) bool {
			return name != "mcpServers" && keys.ByName[name] != nil
		})
	}
	for i, name := range top {
		switch {
		case name == "servers" && hasOurs(root.Content[2*i+1], serverKey(keys)):
			return false
		case name != "servers" && !slices.Contains(besideServers, name):
			return false
		}
	}
	return slices.Contains(top, "servers")
}

// hasOurs reports whether a server of the table has a key that no host has. Other spellings
// of mcpbridge's keys belong to hosts.
func hasOurs(table *yaml.Node, server *key.Key) bool {
	for i := 1; i < len(table.Content); i += 2 {
		for j, name := range keysIn(table.Content[i]) {
			shared := name == hostsAuth || name == hostsTools && table.Content[i].Content[2*j+1].Kind == yaml.SequenceNode
			if k := server.ByName[name]; k != nil && k.Name == name && !k.Hosts && !shared {
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

// adapted returns what a file has in mcpbridge's keys. It warns of keys that have another
// meaning here than in a host's file, or none.
func (r *reader) adapted(path string, root *yaml.Node, in format) *yaml.Node {
	if in == inYAML || in == inJSON && !isHosts(root, r.keys) {
		return root
	}
	out, notes := hostfile.Guess(path, root).Adapt(root, hostOptions(path, r.Environ, r.keys))
	for _, n := range notes {
		r.rep.WarnAt(key.InFile(path, n.Line), key.Join("", n.Path...), "%s", n.Text)
	}
	return out
}

// Keys that we have, too: hosts have below auth how they log in to a server, and as tools a list
// of those that they offer.
const (
	hostsAuth  = "auth"
	hostsTools = "tools"
)

func hostOptions(path string, environ []string, keys *key.Key) hostfile.Options {
	known := serverKey(keys).Spelled()
	return hostfile.Options{
		Machine: ThisMachine(environ),
		Path:    path,
		Keys:    slices.DeleteFunc(slices.Clone(known), func(name string) bool { return name == hostsAuth }),
		Suggest: func(name string) string { return key.Suggest(name, known) },
	}
}

// ThisMachine returns the directories in which hosts keep their files.
func ThisMachine(environ []string) hostfile.Machine {
	lookup := value.Environ(environ)
	m := hostfile.Machine{OS: runtime.GOOS}
	home, config := "HOME", "XDG_CONFIG_HOME"
	if m.OS == "windows" {
		home, config = "USERPROFILE", "APPDATA"
	}
	m.Home, _ = lookup(home)
	m.AppData, _ = lookup(config)
	m.CodexHome, _ = lookup("CODEX_HOME")
	if here, err := os.Getwd(); err == nil {
		m.Here = filepath.Clean(here)
	}
	return m
}

// Foreign are keys of desktop clients' files that have no meaning for a gateway. Users copy
// them, so they are warnings, and not errors like other unknown keys.
var Foreign = []string{
	"$schema", "alwaysAllow", "autoApprove", "chat", "description", "dev", "gallery",
	"globalShortcut", "icon", "inputs", "preferences", "trust", "version", "watchPaths",
}

// instead maps keys of desktop clients' servers to the keys of mcpbridge with the same
// meaning. In a client's own file they are read directly.
var instead = map[string]string{
	"httpUrl":       "url, and type: http",
	"transportType": "type",
	"enabled":       "disabled",
	"headersHelper": "headers",
	"includeTools":  "tools: {allow: [NAME]}",
	"enabledTools":  "tools: {allow: [NAME]}",
	"excludeTools":  "tools: {deny: [NAME]}",
	"disabledTools": "tools: {deny: [NAME]}",
	"oauth":         "a token below headers, as Authorization",

	"http_headers":         "headers",
	"env_http_headers":     "headers: {NAME: \"${VARIABLE}\"}",
	"bearer_token_env_var": "headers: {Authorization: \"Bearer ${VARIABLE}\"}",
	"env_vars":             "env: {VARIABLE: \"${VARIABLE}\"}",
	"enabled_tools":        "tools: {allow: [NAME]}",
	"disabled_tools":       "tools: {deny: [NAME]}",
	"startup_timeout_sec":  "timeouts: {connect: 20s}",
	"tool_timeout_sec":     "timeouts: {request: 60s}",
}

// serverKey returns the key of a server.
func serverKey(keys *key.Key) *key.Key { return keys.ByName["servers"].Each }
