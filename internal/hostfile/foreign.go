package hostfile

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// Foreign returns what to do with a file that a program has for MCP servers, but not the one or not
// in the shape that is read here, and on which line that shows; "" if it is no such file.
func Foreign(root *yaml.Node, isJSON bool) (advice string, line int) {
	for _, kv := range pairs(root) {
		switch {
		case isJSON && kv.name() == "mcp" && valueOf(kv.value, "servers") != nil:
			return vscodeSettings, kv.key.Line
		case isJSON && kv.name() == "mcp.servers":
			return vscodeSettings, kv.key.Line
		case kv.name() == "mcpServers" && kv.value.Kind == yaml.SequenceNode && slices.ContainsFunc(kv.value.Content, named):
			return ContinueAdvice, kv.key.Line
		}
	}
	return "", 0
}

func named(item *yaml.Node) bool { return valueOf(item, "name") != nil }

// Foreign is [Foreign] for the content of a host's file.
func (h *Host) Foreign(data []byte) (advice string) {
	root, err := h.Parse(data)
	if err != nil || h == codex {
		return ""
	}
	advice, _ = Foreign(root, true)
	return advice
}

const vscodeSettings = "is settings.json of VS Code, which has its servers in mcp.json since version 1.102: move what stands below mcp there, to servers at the top (VS Code does it when it starts; its command MCP: Open User Configuration opens that file), and give that file to mcpbridge"

// ContinueAdvice is what to do with Continue's servers.
const ContinueAdvice = "Continue has its servers in a list, which mcpbridge neither reads nor changes: in ~/.continue/config.yaml, write command: mcpbridge and args: [wrap, --, COMMAND, ARGS...] below the server's name; for serve, write the server into a file like config.example.yaml, as servers: {NAME: {command: COMMAND, args: [ARGS...]}}"
