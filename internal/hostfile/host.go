package hostfile

import (
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
)

// A Host is a program with a configuration file for MCP servers.
type Host struct {
	Name  string // in commands
	Title string // for display

	// table is the key of the servers.
	table string
	// seconds says that timeouts are in seconds instead of milliseconds, and unsure that
	// the unit is unknown.
	seconds, unsure bool
	// folder is the folder of a project's file, below the project's folder; "" if there
	// is none.
	folder string
	// beside is what the host counts with names of tools, besides the name of their server,
	// and longest what it allows together; 0 for what all hosts do.
	beside, longest int
	// variables says that the host supports ${userHome}, ${workspaceFolder} and the like.
	variables bool
}

// longestName is how long names of tools may be in all hosts.
const longestName = 64

var (
	claude     = &Host{Name: "claude", Title: "Claude Desktop", table: "mcpServers", beside: len("mcp____"), longest: longestName}
	claudeCode = &Host{Name: "claude-code", Title: "Claude Code", table: "mcpServers", beside: len("mcp____"), longest: longestName}
	vscode     = &Host{Name: "vscode", Title: "VS Code", table: "servers", folder: ".vscode", variables: true}
	cursor     = &Host{Name: "cursor", Title: "Cursor", table: "mcpServers", folder: ".cursor", variables: true, beside: len(":"), longest: 60}
	windsurf   = &Host{Name: "windsurf", Title: "Windsurf", table: "mcpServers"}
	cline      = &Host{Name: "cline", Title: "Cline", table: "mcpServers", seconds: true}
	gemini     = &Host{Name: "gemini", Title: "Gemini CLI", table: "mcpServers", folder: ".gemini"}
	codex      = &Host{Name: "codex", Title: "Codex", table: codexTable, folder: ".codex", seconds: true, beside: len("mcp____"), longest: longestName}
	zed        = &Host{Name: "zed", Title: "Zed", table: "context_servers", folder: ".zed", seconds: true}

	// Any is a host that can't be recognized by its file.
	Any = &Host{Title: "the host", table: "mcpServers", unsure: true, variables: true}
)

// All has the known hosts.
var All = []*Host{claude, claudeCode, vscode, cursor, windsurf, cline, gemini, codex, zed}

// isTable reports whether a key at the top of a host's file is that of the servers.
func isTable(name string) bool {
	return name == "servers" || name == "mcpServers" || name == codex.table || name == zed.table
}

// Named returns the host called name, or nil.
func Named(name string) *Host {
	i := slices.IndexFunc(All, func(h *Host) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	return All[i]
}

// NameMax returns how long names of tools may be, of a server with the given name in the host's
// file: some hosts count that name, too.
func (h *Host) NameMax(server string) int {
	if h.longest == 0 {
		return longestName
	}
	return h.longest - h.beside - len(server)
}

// Guess returns the host of a file by the path, or by keys that only one host has, or
// else [Any].
func Guess(path string, root *yaml.Node) *Host {
	folder, base := filepath.Base(filepath.Dir(path)), filepath.Base(path)
	switch {
	case base == "claude_desktop_config.json":
		return claude
	case base == ".mcp.json" || base == ".claude.json":
		return claudeCode
	case base == "cline_mcp_settings.json":
		return cline
	case base == "mcp_config.json":
		return windsurf
	case folder == cursor.folder:
		return cursor
	case folder == gemini.folder:
		return gemini
	case folder == codex.folder || valueOf(root, codex.table) != nil:
		return codex
	case folder == zed.folder || valueOf(root, zed.table) != nil:
		return zed
	case valueOf(root, vscode.table) != nil:
		return vscode
	}
	return guessByKeys(valueOf(root, "mcpServers"))
}

// uniqueKeys are keys of servers that only one host has.
var uniqueKeys = map[string]*Host{
	"httpUrl": gemini, "includeTools": gemini, "excludeTools": gemini, "authProviderType": gemini,
	"headersHelper": claudeCode, "alwaysLoad": claudeCode,
	"transportType": cline,
	"auth":          cursor,
	"serverUrl":     windsurf,
}

func guessByKeys(servers *yaml.Node) *Host {
	for _, s := range pairs(servers) {
		for _, kv := range pairs(s.value) {
			if h := uniqueKeys[kv.name()]; h != nil {
				return h
			}
		}
	}
	return Any
}

// Extension is that of the host's file.
func (h *Host) Extension() string {
	if h == codex {
		return ".toml"
	}
	return ".json"
}

// Files returns the possible paths of a host's file, those of the project first.
func (h *Host) Files(at Machine) []string {
	home := func(names ...string) string { return filepath.Join(append([]string{at.Home}, names...)...) }
	switch h {
	case claude:
		return []string{at.appData("Claude", "claude_desktop_config.json")}
	case claudeCode:
		return []string{filepath.Join(at.Here, ".mcp.json"), home(".claude.json")}
	case vscode:
		return []string{filepath.Join(at.Here, ".vscode", "mcp.json"), at.appData("Code", "User", "mcp.json")}
	case cursor:
		return []string{filepath.Join(at.Here, ".cursor", "mcp.json"), home(".cursor", "mcp.json")}
	case windsurf:
		return []string{home(".codeium", "windsurf", "mcp_config.json")}
	case cline:
		return []string{at.appData("Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json")}
	case gemini:
		return []string{filepath.Join(at.Here, ".gemini", "settings.json"), home(".gemini", "settings.json")}
	case codex:
		user := home(".codex")
		if at.CodexHome != "" {
			user = at.CodexHome
		}
		return []string{filepath.Join(at.Here, ".codex", "config.toml"), filepath.Join(user, "config.toml")}
	case zed:
		user := at.appData("Zed", "settings.json")
		if at.OS == "darwin" {
			user = home(".config", "zed", "settings.json")
		} else if at.OS != "windows" {
			user = at.appData("zed", "settings.json")
		}
		return []string{filepath.Join(at.Here, ".zed", "settings.json"), user}
	}
	return nil
}

// A Machine has the folders of the user's machine.
type Machine struct {
	OS      string // as runtime.GOOS
	Home    string // the user's folder
	Here    string // the current folder
	AppData string // %APPDATA% of Windows, XDG_CONFIG_HOME elsewhere; may be empty
	// CodexHome is the folder of Codex, if the user has chosen another one.
	CodexHome string
}

// appData returns a path below the folder for settings of programs.
func (m Machine) appData(names ...string) string {
	base := m.AppData
	switch {
	case m.OS == "darwin":
		base = filepath.Join(m.Home, "Library", "Application Support")
	case base == "" && m.OS == "windows":
		base = filepath.Join(m.Home, "AppData", "Roaming")
	case base == "":
		base = filepath.Join(m.Home, ".config")
	}
	return filepath.Join(append([]string{base}, names...)...)
}

// workspace returns the project's folder of a project's file, or "" for a user's file.
func workspace(path string) string {
	dir := filepath.Dir(path)
	switch base := filepath.Base(path); {
	case slices.Contains([]string{vscode.folder, cursor.folder, gemini.folder, codex.folder, zed.folder}, filepath.Base(dir)):
		return filepath.Dir(dir)
	case base == ".mcp.json":
		return dir
	}
	return ""
}

// A pair is a key of a mapping and its value.
type pair struct{ key, value *yaml.Node }

func (p pair) name() string { return p.key.Value }

// pairs returns the pairs of a mapping, or none for another node.
func pairs(n *yaml.Node) []pair {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var out []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		out = append(out, pair{n.Content[i], n.Content[i+1]})
	}
	return out
}

// valueOf returns the value of a mapping's key, or nil.
func valueOf(n *yaml.Node, name string) *yaml.Node {
	for _, kv := range pairs(n) {
		if kv.name() == name {
			return kv.value
		}
	}
	return nil
}
