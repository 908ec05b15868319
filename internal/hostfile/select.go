package hostfile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Select returns the first table of servers of a host's file, with some of its servers and nothing
// else of the file.
func Select(root *yaml.Node, servers []string) *yaml.Node {
	out := mapping(root.Line)
	for _, kv := range pairs(root) {
		if !isTable(kv.name()) || kv.value.Kind != yaml.MappingNode {
			continue
		}
		table := mapping(kv.value.Line)
		for _, s := range pairs(kv.value) {
			if slices.Contains(servers, s.name()) {
				table.Content = append(table.Content, s.key, s.value)
			}
		}
		out.Content = append(out.Content, kv.key, table)
		break
	}
	return out
}

// InOrder returns servers of a host's file in the order of the file.
func (h *Host) InOrder(data []byte, servers []string) (names []string) {
	root, err := h.Parse(data)
	if err != nil {
		return nil
	}
	for _, kv := range pairs(Select(root, servers)) {
		for _, s := range pairs(kv.value) {
			names = append(names, s.name())
		}
	}
	return names
}

// InheritEnv has the commands of adapted servers get the environment of mcpbridge, which the host
// has chosen, unless they say otherwise. It returns the names of all servers.
func InheritEnv(adapted *yaml.Node) (names []string) {
	for _, kv := range pairs(valueOf(adapted, "servers")) {
		names = append(names, kv.name())
		if s := kv.value; valueOf(s, "command") != nil && valueOf(s, "inherit_env") == nil {
			s.Content = append(s.Content, text("inherit_env", s.Line), scalar("!!bool", "true", s.Line))
		}
	}
	return names
}

// longestPrefix is how long the beginning of names may be by which clients know the server of a tool.
const longestPrefix = 24

// ShortPrefixes gives adapted servers whose names are too long for the beginning of a tool's name,
// such as addresses of repositories, one by the last part of the name that the host has, in the
// order of the file. Otherwise many of them would begin alike.
func ShortPrefixes(adapted *yaml.Node, hosts []string) {
	taken := make(map[string]bool)
	servers := pairs(valueOf(adapted, "servers"))
	for _, kv := range servers {
		taken[kv.name()] = true
	}
	for i, kv := range servers {
		if len(kv.name()) <= longestPrefix || valueOf(kv.value, "prefix") != nil {
			continue
		}
		long := strings.TrimRight(hosts[i], "/")
		last := long[strings.LastIndexByte(long, '/')+1:]
		prefix := shortPrefix(last, "")
		for n := 2; taken[prefix]; n++ {
			prefix = shortPrefix(last, fmt.Sprintf("-%d", n))
		}
		taken[prefix] = true
		kv.value.Content = append(kv.value.Content, text("prefix", kv.key.Line), text(prefix, kv.key.Line))
	}
}

// shortPrefix returns the beginning of a name, with an end, made fit for names of tools.
func shortPrefix(name, end string) string {
	name = strings.ReplaceAll(Name(name), ".", "-")
	for strings.Contains(name, "__") {
		name = strings.ReplaceAll(name, "__", "_")
	}
	return strings.TrimRight(name[:min(len(name), longestPrefix-len(end))], "_-") + end
}

// AddServers returns a file of mcpbridge with the servers of another one that it has not, and
// otherwise as it is, comments too.
func AddServers(file, other []byte) ([]byte, error) {
	var into, from yaml.Node
	if err := yaml.Unmarshal(file, &into); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(other, &from); err != nil {
		return nil, err
	}
	if len(into.Content) == 0 || len(from.Content) == 0 {
		return nil, fmt.Errorf("it is empty")
	}
	there := valueOf(into.Content[0], "servers")
	if there == nil || there.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("it has no servers")
	}
	for _, kv := range pairs(valueOf(from.Content[0], "servers")) {
		if valueOf(there, kv.name()) == nil {
			there.Content = append(there.Content, kv.key, kv.value)
		}
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&into); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return b.Bytes(), enc.Close()
}
