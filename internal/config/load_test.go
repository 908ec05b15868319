package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcpbridge/mcpbridge/internal/settings"
)

// write puts text into a file called c.yaml and makes its folder current, so
// that messages begin with the bare name.
func write(t *testing.T, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("c.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "c.yaml"
}

const notebook = "servers: {notebook: {builtin: notebook}}\n"

func TestDefaults(t *testing.T) {
	c, warnings, err := Load(Options{Path: write(t, notebook)})
	if err != nil || len(warnings) != 0 {
		t.Fatalf("Load = %v, %v, want no mistake", warnings, err)
	}
	want := &Config{
		Listen: "127.0.0.1:2526", Admin: "127.0.0.1:2527", TLS: TLS{ClientAuth: "require"},
		BodyTimeout: 30 * time.Second, WriteTimeout: 10 * time.Second, KeepAlive: 15 * time.Second, Drain: 10 * time.Second,
		ClientIdle: 30 * time.Minute, Keyring: true, Remember: true, Audit: Audit{File: "off"},
		Limits: Limits{
			Body: 4 << 20, Depth: 128, ID: 1 << 10, ProgressToken: 1 << 10, Method: 1 << 10, URI: 8 << 10, Filter: 256 << 10, ClientInfo: 64 << 10, Capabilities: 16 << 10, Requests: 20_000, RequestsEach: 10_000, NewConnections: 4096, UpstreamMessage: 64 << 20, Sessions: 1000, CommandSessions: 64, CommandSessionsEach: 16, ClientSessions: 10_000, ClientSessionsEach: 5_000, ClientEvents: 256 << 10,
			WebSockets: 10_000, WebSocketsEach: 5_000, Streams: 20_000, StreamsEach: 10_000, ListenTopics: 1024, SubscribesEach: 200,
			Parked: 10_000, ParkedEach: 5_000, Tasks: 10_000, TasksEach: 5_000, TaskResults: 16 << 20, Cache: 64 << 20, CacheEntries: 10_000,
		},
		Log: Log{Level: "info", Format: "auto", Access: "off"},
		Servers: []Server{{
			Name: "notebook", Builtin: "notebook", Pin: "off", Remember: true,
			Server: settings.Server{
				Era: "auto", Isolation: "principal", LogLevel: "debug", ClientInfo: "gateway",
				Tasks: settings.Tasks{Mode: "auto", TTL: time.Hour, Optional: "task"}, Subresources: "parent", Replicas: "any", Lanes: settings.Lanes{Stdio: 1, HTTP: 4}, Gather: 20 * time.Millisecond, ParkedTTL: 10 * time.Minute,
				Idle: 5 * time.Minute, Linger: 2 * time.Second,
				Timeouts: settings.Timeouts{Connect: 10 * time.Second, Max: time.Hour},
			},
		}},
	}
	c.files, c.places, c.File = nil, nil, ""
	if !reflect.DeepEqual(c, want) {
		t.Errorf("Load = %+v, want %+v", c, want)
	}
}

// Each way of writing the same thing arrives at the same value.
func TestSpellings(t *testing.T) {
	environ := []string{"TOKEN=s3cret", "PORT=9", "EMPTY="}
	for _, tt := range []struct {
		name, in string
		get      func(*Config) any
		want     any
	}{
		{"mcpServers", "mcpServers: {a: {command: x}}", func(c *Config) any { return c.Servers[0].Command }, "x"},
		{"JSON with tabs and escapes", "{\n\t\"mcpServers\": {\n\t\t\"a\": {\"url\": \"http:\\/\\/h\\/mcp\"}\n\t}\n}", func(c *Config) any { return c.Servers[0].URL }, "http://h/mcp"},
		{"JSON's own escapes", `{"servers": {"a": {"command": "\ud83d\ude00 \\ud83d\n\u00e9\\/"}}}`, func(c *Config) any { return c.Servers[0].Command }, "😀 \\ud83d\né\\/"},
		{"serverUrl", "servers: {a: {serverUrl: 'http://h/mcp'}}", func(c *Config) any { return c.Servers[0].URL }, "http://h/mcp"},
		{"baseUrl", "servers: {a: {baseUrl: 'http://h/mcp'}}", func(c *Config) any { return c.Servers[0].URL }, "http://h/mcp"},
		{"streamable-http is http", "servers: {a: {url: 'http://h/mcp', type: streamable-http}}", func(c *Config) any { return c.Servers[0].Type }, "http"},
		{"file order", "servers:\n  z: {builtin: notebook}\n  a: {builtin: notebook}\n  m: {builtin: notebook}", func(c *Config) any {
			return []string{c.Servers[0].Name, c.Servers[1].Name, c.Servers[2].Name}
		}, []string{"z", "a", "m"}},
		{"dots in names", "servers: {a.b: {builtin: notebook, cache: {tools/list: {ttl: 1m}}}}", func(c *Config) any {
			return c.Servers[0].Cache["tools/list"]
		}, settings.CacheHint{TTL: time.Minute, Scope: "private"}},
		{"alias", "servers: {a: {command: x, args: &a [1, true]}, b: {command: y, args: *a}}", func(c *Config) any { return c.Servers[1].Args }, []string{"1", "true"}},
		{"variable", "servers: {a: {url: 'http://h', headers: {Authorization: 'Bearer ${TOKEN}'}}}", func(c *Config) any {
			return c.Servers[0].Headers["Authorization"]
		}, "Bearer s3cret"},
		{"env: variable", "servers: {a: {command: x, env: {K: '${env:TOKEN}'}}}", func(c *Config) any { return c.Servers[0].Env["K"] }, "s3cret"},
		{"variable default", notebook + "listen: localhost:${NONE:-70}", func(c *Config) any { return c.Listen }, "localhost:70"},
		{"empty variable takes the default", notebook + "listen: localhost:${EMPTY:-70}", func(c *Config) any { return c.Listen }, "localhost:70"},
		{"variable as a number", notebook + "limits: {sessions: \"${PORT}\"}", func(c *Config) any { return c.Limits.Sessions }, int64(9)},
		{"escaped variable", "servers: {a: {command: x, args: ['$${TOKEN}']}}", func(c *Config) any { return c.Servers[0].Args[0] }, "${TOKEN}"},
		{"no keys from a variable", "servers: {a: {command: '${YAML:-x, url: y}'}}", func(c *Config) any { return c.Servers[0].Command }, "x, url: y"},
		{"sizes", notebook + "limits: {body: 64KiB, upstream_message: 2048}", func(c *Config) any {
			return []int64{c.Limits.Body, c.Limits.UpstreamMessage}
		}, []int64{65536, 2048}},
		{"state keys", notebook + "state_keys: ['${TOKEN}-and-ten-more', another-of-sixteen]", func(c *Config) any { return c.StateKeys }, []string{"s3cret-and-ten-more", "another-of-sixteen"}},
		{"roots", "servers: {a: {builtin: notebook, roots: ['file://${HOME:-/home/ada}/my%20notes']}}", func(c *Config) any { return c.Servers[0].Roots }, []string{"file:///home/ada/my%20notes"}},
		{"one of the lanes", "servers: {a: {builtin: notebook, lanes: {stdio: 3}}}", func(c *Config) any { return c.Servers[0].Lanes }, settings.Lanes{Stdio: 3, HTTP: 4}},
		{"zero needs no unit", notebook + "drain: 0", func(c *Config) any { return c.Drain }, time.Duration(0)},
		{"admin off", notebook + "admin: off", func(c *Config) any { return c.Admin }, ""},
		{"admin empty", notebook + "admin: ''", func(c *Config) any { return c.Admin }, ""},
		{"beyond loopback, allowed", notebook + "listen: 0.0.0.0:2526\nallow_anonymous: true", func(c *Config) any { return c.Listen }, "0.0.0.0:2526"},
		{"IPv6 loopback", notebook + "listen: '[::1]:0'", func(c *Config) any { return c.Listen }, "[::1]:0"},
		{"disabled without its variables", notebook[:len(notebook)-2] + ", b: {disabled: true, url: '${NONE}', timeouts: {max: '${NONE}'}}}", func(c *Config) any { return c.Servers[1].Disabled }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _, err := Load(Options{Path: write(t, tt.in), Environ: environ})
			if err != nil {
				t.Fatalf("Load(%q) = %v", tt.in, err)
			}
			if got := tt.get(c); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("Load(%q) gives %#v, want %#v", tt.in, got, tt.want)
			}
		})
	}
}

// Some defaults depend on the kind of the server, or on a key at the top.
func TestDefaultsOfServers(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		connect  time.Duration
		remember bool
	}{
		{"command", "servers: {a: {command: x}}", time.Minute, true},
		{"url", "servers: {a: {url: 'http://h'}}", 10 * time.Second, true},
		{"builtin", "servers: {a: {builtin: notebook}}", 10 * time.Second, true},
		{"command, other timeouts set", "servers: {a: {command: x, timeouts: {request: 5s}}}", time.Minute, true},
		{"command, set", "servers: {a: {command: x, timeouts: {connect: 5s}}}", 5 * time.Second, true},
		{"remembering nothing", "remember: false\nservers: {a: {command: x}}", time.Minute, false},
		{"not this one", "remember: true\nservers: {a: {command: x, remember: false}}", time.Minute, false},
		{"this one alone", "remember: false\nservers: {a: {command: x, remember: true}}", time.Minute, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _, err := Load(Options{Path: write(t, tt.in)})
			if err != nil {
				t.Fatal(err)
			}
			if s := c.Servers[0]; s.Timeouts.Connect != tt.connect || s.Remember != tt.remember {
				t.Errorf("connect %v, remember %v, want %v, %v", s.Timeouts.Connect, s.Remember, tt.connect, tt.remember)
			}
		})
	}
}

// The environment and the command line name commands as the file does.
func TestDefaultsInAllLayers(t *testing.T) {
	c, _, err := Load(Options{
		Servers: []Server{{Name: "x", Command: "echo"}},
		Environ: []string{"MCPBRIDGE_SERVERS__Y__COMMAND=echo", "MCPBRIDGE_REMEMBER=false", "MCPBRIDGE_SERVERS__Y__REMEMBER=true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, remember := range []bool{false, true} {
		if s := c.Servers[i]; s.Timeouts.Connect != time.Minute || s.Remember != remember {
			t.Errorf("%s: connect %v, remember %v, want 1m, %v", s.Name, s.Timeouts.Connect, s.Remember, remember)
		}
	}
}

// Flags override the environment, which overrides the file, which overrides
// the defaults.
func TestLayers(t *testing.T) {
	path := write(t, "listen: localhost:1\nadmin: localhost:2\ndrain: 3s\nservers: {My-Docs: {url: 'http://file', headers: {Authorization: file, X-Other: kept}}}\n")
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	fs.String("listen", "localhost:99", "")
	fs.String("admin", "localhost:98", "")
	fs.Bool("json", false, "")
	if err := fs.Parse([]string{"--listen=localhost:3", "--json"}); err != nil {
		t.Fatal(err)
	}
	c, warnings, err := Load(Options{Path: path, Flags: fs, FlagKeys: map[string]string{"listen": "listen", "admin": "admin"}, Environ: []string{
		"MCPBRIDGE_LISTEN=localhost:4",
		"MCPBRIDGE_ADMIN=localhost:5",
		"MCPBRIDGE_LIMITS__SESSIONS=7",
		"MCPBRIDGE_ALLOWED_HOSTS=[a, b]",
		"MCPBRIDGE_SERVERS__MY_DOCS__URL=https://env",
		"MCPBRIDGE_SERVERS__MY_DOCS__HEADERS__AUTHORIZATION=Bearer ${untouched}",
		"MCPBRIDGE_SERVERS__MY_DOCS__CACHE__TOOLS_LIST__TTL=1s",
		"MCPBRIDGE_SERVERS__EXTRA__BUILTIN=notebook",
		"OTHER=1",
	}})
	if err != nil || len(warnings) != 0 {
		t.Fatalf("Load = %v, %v", warnings, err)
	}
	docs := c.Servers[0]
	for _, tt := range []struct {
		name      string
		got, want any
	}{
		{"flag over environment", c.Listen, "localhost:3"},
		{"environment over file, unchanged flag", c.Admin, "localhost:5"},
		{"file over default", c.Drain, 3 * time.Second},
		{"default", c.KeepAlive, 15 * time.Second},
		{"count", c.Limits.Sessions, int64(7)},
		{"list", c.AllowedHosts, []string{"a", "b"}},
		{"server by folded name", docs.URL, "https://env"},
		{"header replaced, not expanded", docs.Headers, map[string]string{"Authorization": "Bearer ${untouched}", "X-Other": "kept"}},
		{"method by folded name", docs.Cache["tools/list"], settings.CacheHint{TTL: time.Second, Scope: "private"}},
		{"new server", c.Servers[1].Name + c.Servers[1].Builtin, "extranotebook"},
	} {
		if !reflect.DeepEqual(tt.got, tt.want) {
			t.Errorf("%s: got %#v, want %#v", tt.name, tt.got, tt.want)
		}
	}
}

func TestServersFromTheCommandLine(t *testing.T) {
	c, _, err := Load(Options{Servers: []Server{{Name: "x", Command: "echo", Args: []string{"${A}", "2"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Servers[0].Args, []string{"${A}", "2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("Args = %q, want %q: a shell has expanded them before", got, want)
	}
	_, _, err = Load(Options{Servers: []Server{{Name: "x", URL: "ftp://h"}}})
	if got, want := err.Error(), "command line: servers.x.url: is not a URL of an MCP server; write one such as https://docs.example.com/mcp, or wss://docs.example.com/mcp"; got != want {
		t.Errorf("Load = %q, want %q", got, want)
	}
}

func TestMissingFile(t *testing.T) {
	_, _, err := Load(Options{Path: filepath.Join(t.TempDir(), "none.yaml")})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("Load = %v, want an error that names the file and is os.ErrNotExist", err)
	}
}
