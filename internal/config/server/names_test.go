package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

// What is shown of a server, and how, is checked when the configuration is.
func TestG03Names(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"all of it", `tools: {allow: ["read_*"], deny: [read_x], rename: {read_text_file: read}, describe: {read: "Reads."}}, prompts: {rename: {a: b}}, resources: {allow: ["file:///pub/*"]}`, ""},
		{"two of one name", `tools: {rename: {a: x, b: x}}`, `:1: servers.s.tools.rename.b: "x" would be the name of "a", too; give one of them another name`},
		{"a name that allow shows", `tools: {allow: [a, b], rename: {a: b}}`, `:1: servers.s.tools.rename.a: "b" is the name of something else, which allow shows; give it another name, or rename that, too`},
		{"what is hidden", `prompts: {deny: ["a*"], describe: {ab: x}}`, `:1: servers.s.prompts.describe.ab: is hidden by allow and deny`},
		{"an empty list", `tools: {allow: []}`, `:1: servers.s.tools.allow: is empty; name something`},
		{"an empty pattern", `resources: {deny: [""]}`, `:1: servers.s.resources.deny.0: is empty; write a name`},
		{"no list", `tools: {allow: {a: b}}`, `:1: servers.s.tools.allow: want a list, as in [a, b]`},
		{"a URI of which nobody knows the spellings", `resources: {deny: ["note://x"]}`, `warning :1: servers.s.resources.deny.0: is a hint`},
		{"a rename of resources", `resources: {rename: {a: b}}`, `:1: servers.s.resources.rename: unknown key`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "c.yaml")
			if err := os.WriteFile(path, []byte("servers: {s: {url: 'http://h', "+tt.in+"}}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, warnings, err := config.Load(config.Options{Path: path})
			var said []string
			for _, w := range warnings {
				said = append(said, "warning "+w.String())
			}
			if err != nil {
				said = append(said, err.Error())
			}
			got := strings.ReplaceAll(strings.Join(said, "\n"), path, "")
			if !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") || strings.Contains(got, "\n") {
				t.Errorf("Load says %s, want %s", got, tt.want)
			}
		})
	}
}
