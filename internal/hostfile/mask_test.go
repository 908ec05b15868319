package hostfile

import "testing"

// What may be a secret is not shown; what tells what is changed is.
func TestMasked(t *testing.T) {
	for _, tt := range []struct {
		host     *Host
		in, want string
	}{
		{cursor, `{"key": "a", "list": ["b", 1], "in": {"c": "d"}, /* e */ "mcpServers": {"a": {"command": "x", "args": ["-y", "https://h?k=v", "what?"], "env": {"A": "b"}, "headers": {"C": ["d"]}, "n": 1}}, "projects": {"/src": {"mcpServers": {"b": {"command": "y", "env": {"A": "b"}}}}}}`,
			`{"key": "***", "list": ["***", 1], "in": {"c": "***"}, /* e */ "mcpServers": {"a": {"command": "x", "args": ["-y", "https://h?***", "what?"], "env": {"A": "***"}, "headers": {"C": ["***"]}, "n": 1}}, "projects": {"/src": {"mcpServers": {"b": {"command": "y", "env": {"A": "***"}}}}}}`},
		{codex, "key = 'a' # b\nn = 1\nmcp_servers.a = { command = \"x\", env = { A = \"b\" }, url = 'https://h?k' }\n[mcp_servers.b.http_headers]\nA = '''b\nc'''\n[mcp_servers.b.env]\nA.B = [\"c\"]\n[other]\nkey = [\"a\"]\ntable = { key = \"a\", n = 1 }\n[[list]]\nkey = \"a\"\n",
			"key = \"***\" # b\nn = 1\nmcp_servers.a = { command = \"x\", env = { A = \"***\" }, url = \"https://h?***\" }\n[mcp_servers.b.http_headers]\nA = \"***\"\n[mcp_servers.b.env]\nA.B = \"***\"\n[other]\nkey = \"***\"\ntable = { key = \"***\", n = 1 }\n[[list]]\nkey = \"***\"\n"},
		{cursor, `{`, ""},
		{codex, "[", ""},
	} {
		if got := string(tt.host.Masked([]byte(tt.in))); got != tt.want {
			t.Errorf("got\n%s\nwant\n%s", got, tt.want)
		}
	}
}
