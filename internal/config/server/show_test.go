package server_test

import (
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

// What is shown of a server never holds a credential, however it came in.
func TestTargetMasks(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"builtin", "builtin: notebook", "builtin notebook"},
		{"plain arguments", "command: npx\n    args: [-y, '@scope/files', '${HOME}/notes']", "npx -y @scope/files ${HOME}/notes"},
		{"variable", "command: x\n    args: ['${TOKEN}', 'a-${TOKEN}']", "x ${TOKEN} a-${TOKEN}"},
		{"flag and value", "command: x\n    args: [--api-key, s3cret, more]", "x --api-key *** more"},
		{"assignment", "command: x\n    args: [--token=s3cret, API_KEY=s3cret]", "x --token=*** API_KEY=***"},
		{"header argument", "command: npx\n    args: [mcp-remote, 'http://h', --header, 'Authorization: Bearer s3cret']", "npx mcp-remote http://h --header Authorization:***"},
		{"variable in a credential", "command: x\n    args: ['--token=${TOKEN}']", "x --token=***"},
		{"variable in a path", "url: 'http://h/${TOKEN}/mcp?k=s3cret&v=${TOKEN}'", "http://h/${TOKEN}/mcp?k=***&v=***"},
		{"variable as the command", "command: '${TOKEN}'", "${TOKEN}"},
		{"query", "url: http://h/mcp?api_key=s3cret&b=s3cret", "http://h/mcp?api_key=***&b=***"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _, err := config.Load(config.Options{Path: write(t, "servers:\n  a:\n    "+tt.in), Environ: []string{"TOKEN=s3cret", "HOME=/home/s3cret"}})
			if err != nil {
				t.Fatal(err)
			}
			got := c.Servers[0].Target()
			if got != tt.want {
				t.Errorf("Target() = %q, want %q", got, tt.want)
			}
			if strings.Contains(got, "s3cret") {
				t.Errorf("Target() = %q repeats a secret", got)
			}
		})
	}
}
