package layer_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/config/layer"
	"github.com/mcpbridge/mcpbridge/internal/settings"
)

// Whose file it is decides what becomes of a key that nobody knows: in a host's it is
// warned of, in ours it is an error.
func TestDialects(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"Claude's", `{"mcpServers": {"a": {"command": "x", "isolaton": "shared"}}}`, "warning c.yaml:1: servers.a.isolaton: is not known here and has no effect; did you mean isolation?"},
		{"Claude's, with a key of ours in a server", `{"mcpServers": {"a": {"command": "x", "era": "legacy", "timeout": 60}}}`, "warning c.yaml:1: servers.a.timeout: 60 is read as 1m, for timeouts.request: so few can't be milliseconds"},
		{"Claude's, milliseconds", `{"mcpServers": {"a": {"command": "x", "timeout": 60000}}}`, "warning c.yaml:1: servers.a.timeout: 60000 is read as 1m, for timeouts.request: so many can't be seconds"},
		{"VS Code's", `{"servers": {"a": {"command": "x", "isolaton": "shared"}}, "inputs": []}`, "warning c.yaml:1: servers.a.isolaton: is not known here and has no effect; did you mean isolation?"},
		{"ours by a key beside mcpServers", `{"mcpServers": {"a": {"command": "x", "isolaton": "shared"}}, "drain": "5s"}`, "error c.yaml:1: servers.a.isolaton: unknown key; did you mean isolation?"},
		{"ours by a key beside servers", `{"servers": {"a": {"command": "x"}}, "lisen": "localhost:1"}`, "error c.yaml:1: lisen: unknown key; did you mean listen?"},
		{"ours by a key in a server", `{"servers": {"a": {"builtin": "notebook", "isolaton": "shared"}}}`, "error c.yaml:1: servers.a.isolaton: unknown key; did you mean isolation?"},
		{"YAML is ours", "mcpServers: {a: {command: x, timeout: 60}}", "error c.yaml:1: servers.a.timeout: unknown key; did you mean timeouts?"},
		{"a host's key in YAML", "servers: {a: {httpUrl: 'http://h'}}", "error c.yaml:1: servers.a.httpUrl: belongs to desktop clients' files; write url, and type: http"},
		{"another host's key in YAML", "servers: {a: {url: 'http://h', headersHelper: x}}", "error c.yaml:1: servers.a.headersHelper: belongs to desktop clients' files; write headers"},
		{"VS Code's, with tools to offer", `{"servers": {"a": {"command": "x", "tools": ["b"], "isolaton": "shared"}}}`, "warning c.yaml:1: servers.a.isolaton: is not known here and has no effect; did you mean isolation?"},
		{"ours by tools with keys", `{"servers": {"a": {"command": "x", "tools": {"allow": ["b"]}, "isolaton": "shared"}}}`, "error c.yaml:1: servers.a.isolaton: unknown key; did you mean isolation?"},
		{"tools to leave out, in YAML", "servers: {a: {command: x, excludeTools: [b]}}", "error c.yaml:1: servers.a.excludeTools: belongs to desktop clients' files; write tools: {deny: [NAME]}"},
		{"tools that are no list", `{"mcpServers": {"a": {"command": "x", "includeTools": "b"}}}`, "error c.yaml:1: servers.a.tools.allow: want a list, as in [a, b]; found a single value"},
		{"comments keep the lines", "// one\n{ /* two\n three */ \"mcpServers\": {\n  // five\n  \"a\": {\"command\": 3, \"args\": \"x\",},\n},}", "error c.yaml:5: servers.a.args: want a list, as in [a, b]; found a single value"},
		{"not JSON", "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\" \"args\": []}\n  }\n}", "error c.yaml:3: not readable as JSON: invalid character '\"' after object value (expecting ',' or '}') (column 26); correct it there, or just before"},
		{"Codex'", "model = \"m\"\n[mcp_servers.a]\ncommand = \"x\"\nisolaton = \"shared\"\n", "warning c.yaml:1: settings of Codex have no effect here: model\nwarning c.yaml:4: servers.a.isolaton: is not known here and has no effect; did you mean isolation?"},
		{"Codex', with a server that is no table", "[mcp_servers.a]\ncommand = \"x\"\n[mcp_servers]\nb = 3\n", "error c.yaml:4: servers.b: want keys with values below it, as in {key: value}; found a single value"},
		{"Codex', twice", "[mcp_servers.a]\ncommand = \"x\"\n[mcp_servers.a]\n", "error c.yaml:3: not readable as TOML: table a already exists (column 2); correct it there, or just before"},
		{"Codex' key in YAML", "servers: {a: {url: 'http://h', bearer_token_env_var: T}}", "error c.yaml:1: servers.a.bearer_token_env_var: belongs to desktop clients' files; write headers: {Authorization: \"Bearer ${VARIABLE}\"}"},
		{"Zed's", `{"context_servers": {"a": {"command": "x", "isolaton": "shared"}, "b": {"source": "extension", "settings": {}}}}`, "warning c.yaml:1: servers.a.isolaton: is not known here and has no effect; did you mean isolation?\nwarning c.yaml:1: servers.b: is left out: an extension of Zed knows how it is started, and its file does not"},
		{"VS Code's settings", "{\n  \"mcp\": {\"servers\": {\"a\": {\"command\": \"x\"}}}}", "error c.yaml:2: is settings.json of VS Code, which has its servers in mcp.json since version 1.102: move what stands below mcp there, to servers at the top (VS Code does it when it starts; its command MCP: Open User Configuration opens that file), and give that file to mcpbridge"},
		{"Continue's", "name: mine\nmcpServers:\n- name: a\n  command: x\n", "error c.yaml:2: Continue has its servers in a list, which mcpbridge neither reads nor changes: in ~/.continue/config.yaml, write command: mcpbridge and args: [wrap, --, COMMAND, ARGS...] below the server's name; for serve, write the server into a file like config.example.yaml, as servers: {NAME: {command: COMMAND, args: [ARGS...]}}"},
		{"YAML in braces", "{servers: {a: {command: x, era: old}}}", `error c.yaml:1: servers.a.era: "old" is unknown; write auto, legacy, modern or client`},
		{"cut off", "{\"mcpServers\": {\"a\": {", "error c.yaml:1: not readable as JSON: parsing value: unexpected EOF (column 23); correct it there, or just before"},
		{"a byte order mark", "\ufeff{\"mcpServers\": {\"a\": {\"command\": \"x\", \"trust\": true}}}", "warning c.yaml:1: servers.a.trust: says what the host runs without asking its user; mcpbridge never asks, so it has no effect here"},
		{"nothing in it", `{"mcpServers": {}}`, "error c.yaml:1: servers: no servers; add one, for example notebook: {builtin: notebook}"},
		{"servers that are a list", `{"mcpServers": []}`, "error c.yaml:1: servers: want keys with values below it, as in {key: value}; found a list"},
		{"a server that is a text", `{"mcpServers": {"a": "npx"}}`, "error c.yaml:1: servers.a: want keys with values below it, as in {key: value}; found a single value"},
		{"two spellings", `{"mcpServers": {"a": {"url": "http://h", "serverUrl": "http://i"}}}`, "error c.yaml:1: servers.a.serverUrl: means the same as url, which is also set; remove one of them"},
		{"two of a name", "{\"mcpServers\": {\"a\": {\"command\": \"x\"},\n\"a\": {\"command\": \"y\"}}}", "error c.yaml:2: servers.a: is a duplicate of the key on line 1; remove or rename one of them"},
		{"names that become the same", "{\"mcpServers\": {\"a b\": {\"command\": \"x\"},\n\"a-b\": {\"command\": \"y\"}}}", `warning c.yaml:1: servers.a-b-2: is called "a b" by the host; a name here is part of an endpoint's path`},
		{"VS Code's own variables", `{"servers": {"a": {"command": "${command:pick}"}}}`, "error c.yaml:1: servers.a.command: only VS Code expands ${command:…}; write the value, or an environment variable such as ${TOKEN}"},
		{"an input", `{"servers": {"a": {"command": "${input:my key}"}}}`, "error c.yaml:1: servers.a.command: desktop clients ask the user for ${input:…}; set the environment variable INPUT_MY_KEY instead"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, warnings, err := config.Load(config.Options{Path: write(t, tt.in)})
			var got []string
			for _, w := range warnings {
				got = append(got, "warning "+w.String())
			}
			if err != nil {
				got = append(got, "error "+err.Error())
			}
			if all := strings.Join(got, "\n"); all != tt.want {
				t.Errorf("Load(%s) says\n%s\nwant\n%s", tt.in, all, tt.want)
			}
		})
	}
}

// What has a meaning here is mapped.
func TestHostsKeys(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		get      func(*config.Server) any
		want     any
	}{
		{"httpUrl", `{"httpUrl": "http://h", "timeout": 600000}`, func(s *config.Server) any {
			return []any{s.URL, s.Type, s.Timeouts.Request}
		}, []any{"http://h", "http", 10 * time.Minute}},
		{"httpUrl before url", `{"httpUrl": "http://h", "url": "http://i"}`, func(s *config.Server) any { return s.URL }, "http://h"},
		{"serverUrl", `{"serverUrl": "http://h"}`, func(s *config.Server) any { return s.URL }, "http://h"},
		{"transportType", `{"url": "http://h", "transportType": "sse"}`, func(s *config.Server) any { return s.Type }, "sse"},
		{"type before transportType", `{"url": "http://h", "transportType": "sse", "type": "streamableHttp"}`, func(s *config.Server) any { return s.Type }, "http"},
		{"a timeout longer than max", `{"url": "http://h", "timeout": 7200000}`, func(s *config.Server) any {
			return s.Timeouts
		}, settings.Timeouts{Connect: 10 * time.Second, Request: 2 * time.Hour, Max: 2 * time.Hour}},
		{"enabled", `{"url": "http://h", "enabled": false}`, func(s *config.Server) any { return s.Disabled }, true},
		{"numbers in env and args", `{"command": "x", "env": {"A": 1, "B": true, "C": null}, "args": [8080]}`, func(s *config.Server) any {
			return []any{s.Env, s.Args}
		}, []any{map[string]string{"A": "1", "B": "true"}, []string{"8080"}}},
		{"variables of Gemini CLI", `{"command": "x", "env": {"A": "$TOKEN", "B": "a$${x}", "C": "$5"}, "trust": false, "includeTools": ["a"]}`, func(s *config.Server) any {
			return s.Env
		}, map[string]string{"A": "s3cret", "B": "a${x}", "C": "$5"}},
		{"variables of Cursor", `{"command": "${userHome}${/}x", "args": ["${workspaceFolderBasename}", "${pathSeparator}", "${env:TOKEN}"]}`, func(s *config.Server) any {
			return []any{s.Command, s.Args[1:]}
		}, []any{"/home/ada/x", []string{"/", "s3cret"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := `{"mcpServers": {"a": ` + tt.in + `, "b": {"command": "keeps it from being the only one"}}}`
			c, _, err := config.Load(config.Options{Path: write(t, in), Environ: []string{"TOKEN=s3cret", "HOME=/home/ada"}})
			if err != nil {
				t.Fatal(err)
			}
			if got := tt.get(&c.Servers[0]); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%s gives %#v, want %#v", tt.in, got, tt.want)
			}
		})
	}
}

// A file that may be VS Code's is ours when a server has a key that no host has.
func TestOursByKey(t *testing.T) {
	shared := []string{"disabled", "command", "args", "env", "envFile", "cwd", "url", "serverUrl", "baseUrl", "headers", "type", "auth"}
	for _, name := range config.Keys().ByName["servers"].Each.Spelled() {
		text := `{"servers": {"a": {"` + name + `": 1}}}`
		if got, want := layer.IsHosts(text, config.Keys()), slices.Contains(shared, name); got != want {
			t.Errorf("with %s the file is a host's: %v, want %v", name, got, want)
		}
	}
}
