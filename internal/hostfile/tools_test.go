package hostfile

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The keys by which hosts choose tools become what is shown here.
func TestG03ToolsOfHosts(t *testing.T) {
	for _, tt := range []struct {
		name, keys string
		want       string   // of tools
		notes      []string // with the key
	}{
		{"Gemini's", `"includeTools": ["a", "b(x)"], "excludeTools": ["c"]`, `{allow: [a, b], deny: [c]}`, nil},
		{"Windsurf's", `"disabledTools": ["a", "b"]`, `{deny: [a, b]}`, nil},
		{"enabled ones", `"enabledTools": ["a"]`, `{allow: [a]}`, nil},
		{"Copilot's", `"tools": ["a", "b"]`, `{allow: [a, b]}`, nil},
		{"all of them", `"tools": ["*"]`, ``, nil},
		{"all but some", `"tools": ["*"], "disabledTools": ["a"]`, `{deny: [a]}`, nil},
		{"two lists", `"excludeTools": ["a"], "disabledTools": ["b"]`, `{deny: [a, b]}`, nil},
		{"two lists that allow", `"includeTools": ["a"], "tools": ["b"]`, `{allow: [a]}`, []string{"tools: has no effect beside the other list of tools that are shown"}},
		{"none at all", `"includeTools": [], "excludeTools": ["a"]`, `{deny: ['*', a]}`, []string{"includeTools: is empty: no tool of the server is shown"}},
		{"none to leave out", `"disabledTools": []`, ``, nil},
		{"null", `"includeTools": null, "disabledTools": null`, ``, nil},
		{"our own", `"tools": {"deny": ["a"], "rename": {"b": "c"}}`, `{deny: [a], rename: {b: c}}`, nil},
		{"no list", `"includeTools": "a"`, `{allow: a}`, nil}, // the check of the configuration says so
		{"approvals", `"alwaysAllow": ["a"], "autoApprove": ["b"], "trust": true`, ``, []string{"alwaysAllow: " + noAsking, "autoApprove: " + noAsking, "trust: " + noAsking}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, err := Parse([]byte(`{"mcpServers": {"s": {"command": "x", ` + tt.keys + `}}}`))
			if err != nil {
				t.Fatal(err)
			}
			out, notes := Any.Adapt(root, Options{Keys: []string{"command", "tools"}, Suggest: strings.ToUpper})
			if got := flow(t, valueOf(valueOf(valueOf(out, "servers"), "s"), "tools")); got != tt.want {
				t.Errorf("tools: %s, want %s", got, tt.want)
			}
			var said []string
			for _, n := range notes {
				said = append(said, n.Path[len(n.Path)-1]+": "+n.Text)
			}
			if !slices.Equal(said, tt.notes) {
				t.Errorf("notes %q, want %q", said, tt.notes)
			}
		})
	}
}

// flow writes a node on one line.
func flow(t *testing.T, n *yaml.Node) string {
	t.Helper()
	if n == nil {
		return ""
	}
	c := plain(n)
	c.Style = yaml.FlowStyle
	text, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
