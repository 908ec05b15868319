package hostfile

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFiles(t *testing.T) {
	linux := Machine{OS: "linux", Home: "/home/ada", Here: "/src/app"}
	mac := Machine{OS: "darwin", Home: "/Users/ada", Here: "/src/app"}
	windows := Machine{OS: "windows", Home: "/Users/ada", Here: "/src/app", AppData: "/Users/ada/AppData/Roaming"}
	for _, tt := range []struct {
		host string
		at   Machine
		want []string
	}{
		{"claude", linux, []string{"/home/ada/.config/Claude/claude_desktop_config.json"}},
		{"claude", mac, []string{"/Users/ada/Library/Application Support/Claude/claude_desktop_config.json"}},
		{"claude", windows, []string{"/Users/ada/AppData/Roaming/Claude/claude_desktop_config.json"}},
		{"claude-code", linux, []string{"/src/app/.mcp.json", "/home/ada/.claude.json"}},
		{"vscode", linux, []string{"/src/app/.vscode/mcp.json", "/home/ada/.config/Code/User/mcp.json"}},
		{"vscode", mac, []string{"/src/app/.vscode/mcp.json", "/Users/ada/Library/Application Support/Code/User/mcp.json"}},
		{"cursor", windows, []string{"/src/app/.cursor/mcp.json", "/Users/ada/.cursor/mcp.json"}},
		{"windsurf", linux, []string{"/home/ada/.codeium/windsurf/mcp_config.json"}},
		{"cline", mac, []string{"/Users/ada/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"}},
		{"gemini", linux, []string{"/src/app/.gemini/settings.json", "/home/ada/.gemini/settings.json"}},
		{"codex", linux, []string{"/src/app/.codex/config.toml", "/home/ada/.codex/config.toml"}},
		{"codex", Machine{Home: "/home/ada", Here: "/src/app", CodexHome: "/opt/codex"}, []string{"/src/app/.codex/config.toml", "/opt/codex/config.toml"}},
		{"zed", linux, []string{"/src/app/.zed/settings.json", "/home/ada/.config/zed/settings.json"}},
		{"zed", mac, []string{"/src/app/.zed/settings.json", "/Users/ada/.config/zed/settings.json"}},
		{"zed", windows, []string{"/src/app/.zed/settings.json", "/Users/ada/AppData/Roaming/Zed/settings.json"}},
	} {
		got := Named(tt.host).Files(tt.at)
		for i := range got {
			got[i] = filepath.ToSlash(got[i])
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s on %s: %q, want %q", tt.host, tt.at.OS, got, tt.want)
		}
	}
}

// A file is recognized by its path, or else by keys of one host.
func TestGuess(t *testing.T) {
	for _, tt := range []struct{ path, in, want string }{
		{"/home/ada/.config/Claude/claude_desktop_config.json", `{}`, "Claude Desktop"},
		{".mcp.json", `{}`, "Claude Code"},
		{"/home/ada/.claude.json", `{}`, "Claude Code"},
		{".vscode/mcp.json", `{"servers": {}}`, "VS Code"},
		{".cursor/mcp.json", `{}`, "Cursor"},
		{"/home/ada/.gemini/settings.json", `{}`, "Gemini CLI"},
		{"x/mcp_config.json", `{}`, "Windsurf"},
		{".codex/config.toml", `{}`, "Codex"},
		{"copy.toml", `{"mcp_servers": {}}`, "Codex"},
		{".zed/settings.json", `{}`, "Zed"},
		{"settings.json", `{"context_servers": {}}`, "Zed"},
		{"x/cline_mcp_settings.json", `{}`, "Cline"},
		{"copy.json", `{"servers": {}}`, "VS Code"},
		{"copy.json", `{"mcpServers": {"a": {"httpUrl": "x"}}}`, "Gemini CLI"},
		{"copy.json", `{"mcpServers": {"a": {"headersHelper": "x"}}}`, "Claude Code"},
		{"copy.json", `{"mcpServers": {"a": {"transportType": "x"}}}`, "Cline"},
		{"copy.json", `{"mcpServers": {"a": {"serverUrl": "x"}}}`, "Windsurf"},
		{"copy.json", `{"mcpServers": {"a": {"url": "x", "auth": {}}}}`, "Cursor"},
		{"copy.json", `{"mcpServers": {"a": {"command": "x"}}}`, "the host"},
	} {
		root, err := Parse([]byte(tt.in))
		if err != nil {
			t.Fatal(err)
		}
		if got := Guess(filepath.FromSlash(tt.path), root).Title; got != tt.want {
			t.Errorf("Guess(%s, %s) = %s, want %s", tt.path, tt.in, got, tt.want)
		}
	}
}

// A number without a unit is read in the intended unit, and a note says so.
func TestTimeouts(t *testing.T) {
	for _, tt := range []struct {
		host            *Host
		value, want, by string
	}{
		{cline, "60", "1m", "Cline counts in seconds"},
		{cline, "3600", "1h", "Cline counts in seconds"},
		{cline, "60000", "1m", "Cline counts in seconds, but so many were meant as milliseconds"},
		{gemini, "60000", "1m", "Gemini CLI counts in milliseconds"},
		{gemini, "1000", "1s", "Gemini CLI counts in milliseconds"},
		{gemini, "60", "1m", "Gemini CLI counts in milliseconds, but so few were meant as seconds"},
		{claudeCode, "1500.5", "1.5005s", "Claude Code counts in milliseconds"},
		{Any, "60", "1m", "so few can't be milliseconds"},
		{Any, "60000", "1m", "so many can't be seconds"},
		{gemini, "99999999999", "", ""},
		{gemini, "-1", "", ""},
		{gemini, `"1m"`, "", ""},
	} {
		root, err := Parse([]byte(`{"mcpServers": {"a": {"url": "x", "timeout": ` + tt.value + `}}}`))
		if err != nil {
			t.Fatal(err)
		}
		out, notes := tt.host.Adapt(root, Options{Keys: []string{"url"}, Suggest: strings.ToUpper})
		timeouts := valueOf(valueOf(valueOf(out, "servers"), "a"), "timeouts")
		if request := valueOf(timeouts, "request"); (request == nil) != (tt.want == "") || request != nil && request.Value != tt.want {
			t.Errorf("%s, %s: got %+v, want %s", tt.host.Title, tt.value, request, tt.want)
		}
		if len(notes) != 1 || tt.by != "" && notes[0].Text != strings.Trim(tt.value, `"`)+" is read as "+tt.want+", for timeouts.request: "+tt.by {
			t.Errorf("%s, %s: notes %+v", tt.host.Title, tt.value, notes)
		}
	}
}

// Claude Code has servers for single folders in the user's file. Those of the current
// folder have precedence over the user's.
func TestProjects(t *testing.T) {
	const in = `{"mcpServers": {"a": {"command": "user"}, "b": {"command": "user"}},
"projects": {
  "/src/app": {"mcpServers": {"a": {"command": "app"}, "c": {"command": "app"}}},
  "/src/other": {"mcpServers": {"d": {"command": "other"}}}}}`
	root, err := Parse([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	out, notes := claudeCode.Adapt(root, Options{Machine: Machine{Here: "/src/app"}, Keys: []string{"command"}})
	var got []string
	for _, s := range pairs(valueOf(out, "servers")) {
		got = append(got, s.name()+" "+valueOf(s.value, "command").Value)
	}
	if want := []string{"b user", "a app", "c app"}; !slices.Equal(got, want) {
		t.Errorf("servers %q, want %q", got, want)
	}
	var said []string
	for _, n := range notes {
		said = append(said, strings.Join(n.Path, ".")+": "+n.Text)
	}
	want := []string{
		"servers.a: is left out for the one of the current folder, on line 3",
		"projects: the servers of other folders than the current one are left out: /src/other",
	}
	if !slices.Equal(said, want) {
		t.Errorf("notes %q, want %q", said, want)
	}
}
