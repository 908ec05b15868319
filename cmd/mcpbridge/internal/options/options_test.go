package options

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/gateway/replicas/nats"
	"github.com/mcpbridge/mcpbridge/gateway/replicas/redis"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/settings"
)

// Every key arrives where it is meant to: each has a value here that is not its
// default.
func TestConfigArrives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	err := os.WriteFile(path, []byte(`
allowed_origins: [https://app.example.com]
allowed_hosts: [mcp.example.com]
trusted_proxies: [10.1.2.3/8, 192.0.2.7]
state_keys: [0123456789abcdef]
body_timeout: 1s
write_timeout: 2s
keep_alive: 3s
drain: 8s
client_idle: 23s
replicas: {engine: "tls://n:1", credentials: n.creds, prefix: p, keys: [kD3vZ0qXy7Tn2LwRb9EeJc5HsVfUaG1oMiPpQ4t8zS0], peer: "127.0.0.1:1", advertise: "h:2", heartbeat: 3s}
limits: {body: 2KiB, depth: 9, memory: 128MiB, command_sessions: 3, command_sessions_each: 2, id: 103, progress_token: 104, method: 105, uri: 306, filter: 307, client_info: 308, capabilities: 309, requests: 101, requests_each: 102, upstream_message: 3KiB, sessions: 4, client_sessions: 11, client_sessions_each: 12, client_events: 4KiB, websockets: 13, websockets_each: 14, new_connections: 17, streams_each: 16, streams: 5, listen_topics: 6, parked: 7, parked_each: 8, tasks: 19, tasks_each: 20, task_results: 5KiB, cache: 1MiB, cache_entries: 10, metric_tools: 18}
servers:
  web:
    url: https://docs.example.com/mcp
    headers: {X-Key: k}
  child: {command: x}
  socket: {url: "wss://docs.example.com/mcp", type: ws, headers: {X-Key: k}}
  old: {url: "https://docs.example.com/sse", type: sse}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	c, warnings, err := config.Load(config.Options{Path: path})
	if err != nil || len(warnings) != 0 {
		t.Fatalf("Load = %v, %v", warnings, err)
	}
	want := &gateway.Options{
		Limits: map[string]int64{
			"memory": 64 << 20, "body": 2 << 10, "depth": 9, "id": 103, "progress_token": 104, "method": 105, "uri": 306, "filter": 307, "client_info": 308, "capabilities": 309,
			"requests": 101, "requests_each": 102, "upstream_message": 3 << 10, "sessions": 4, "command_sessions": 3, "command_sessions_each": 2,
			"client_sessions": 11, "client_sessions_each": 12, "client_events": 4 << 10, "websockets": 13, "websockets_each": 14, "new_connections": 17, "streams": 5, "streams_each": 16, "listen_topics": 6,
			"subscribes_each": 200, "parked": 7, "parked_each": 8, "tasks": 19, "tasks_each": 20, "task_results": 5 << 10, "cache": 1 << 20, "cache_entries": 10, "metric_tools": 18,
		},
		StateKeys: []string{"0123456789abcdef"}, SessionIdle: 23 * time.Second,
		Replicas: &gateway.Replicas{
			Engine: nats.Engine{URL: "tls://n:1", Credentials: filepath.Join(filepath.Dir(path), "n.creds"), Prefix: "p"}, Keys: []string{"kD3vZ0qXy7Tn2LwRb9EeJc5HsVfUaG1oMiPpQ4t8zS0"}, Listen: "127.0.0.1:1", Advertise: "h:2", Heartbeat: 3 * time.Second,
		},
		BodyTimeout: time.Second, WriteTimeout: 2 * time.Second, KeepAlive: 3 * time.Second, Drain: 4 * time.Second, CloseGrace: 8 * time.Second / 5,
		AllowedHosts: []string{"mcp.example.com"}, AllowedOrigins: []string{"https://app.example.com"},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.7/32")},
	}
	if got := Gateway(c); !reflect.DeepEqual(got, want) {
		t.Errorf("gateway options = %+v\nwant %+v", got, want)
	}
	web := gateway.ServerOptions{
		Name: "web", URL: "https://docs.example.com/mcp", Header: http.Header{"X-Key": {"k"}},
		Remember: true,
	}
	if got := Server(&c.Servers[0]); !reflect.DeepEqual(got, web) {
		t.Errorf("server options = %+v\nwant %+v", got, web)
	}
	if got := Server(&c.Servers[1]); !reflect.DeepEqual(got.Command, []string{"x"}) || !got.Remember {
		t.Errorf("options of a command = %+v, want its argv", got)
	}
	if got := Server(&c.Servers[2]); got.URL != "wss://docs.example.com/mcp" || got.Header.Get("X-Key") != "k" || got.Transport != "" {
		t.Errorf("options of a WebSocket = %+v", got)
	}
	if got := Server(&c.Servers[3]); got.Transport != gateway.TransportSSE {
		t.Errorf("of type sse: transport %q", got.Transport)
	}
}

// Each engine has the package of its URL, and the certificates that files name.
func TestEngines(t *testing.T) {
	for url, want := range map[string]gateway.Engine{
		"nats://n":                         nats.Engine{URL: "nats://n", Credentials: "c", Prefix: "p"},
		"tls://n":                          nats.Engine{URL: "tls://n", Credentials: "c", Prefix: "p"},
		"rediss://r":                       redis.Engine{URL: "rediss://r", Prefix: "p"},
		"redis+sentinel://s?master_name=m": redis.Engine{URL: "redis+sentinel://s?master_name=m", Prefix: "p"},
		"redis+cluster://c":                redis.Engine{URL: "redis+cluster://c", Prefix: "p"},
		"":                                 nil,
	} {
		c := &config.Replicas{Engine: url, Credentials: "c", Prefix: "p"}
		got := replicasOf(c)
		if got.Engine != want {
			t.Errorf("the engine of %q = %+v, want %+v", url, got.Engine, want)
		}
		if err := AddReplicaTLS(got, c, slog.New(slog.DiscardHandler)); err != nil || got.Engine != want {
			t.Errorf("the engine of %q without certificates = %+v, %v, want %+v", url, got.Engine, err, want)
		}
		c.EngineTLS.ServerName = "engine.example"
		if err := AddReplicaTLS(got, c, slog.New(slog.DiscardHandler)); err != nil {
			t.Error(err)
		}
		if name := serverName(got.Engine); want != nil && name != c.EngineTLS.ServerName {
			t.Errorf("the engine of %q has to be %q, want what the configuration says", url, name)
		}
	}
}

// serverName returns who an engine has to be; empty if nobody says it.
func serverName(e gateway.Engine) string {
	var t *tls.Config
	switch e := e.(type) {
	case nats.Engine:
		t = e.TLS
	case redis.Engine:
		t = e.TLS
	}
	if t == nil {
		return ""
	}
	return t.ServerName
}

// What is to be heeded on the way to a server is handed on as it was read, but for builtin
// servers: these have one era, and are in one process.
func TestSettings(t *testing.T) {
	read := settings.Server{Era: "auto", Replicas: "any", Isolation: settings.IsolateNothing}
	for builtin, want := range map[string][2]string{"": {"auto", "any"}, "notebook": {"legacy", "one"}, ModernNotebook: {"modern", "one"}} {
		got := Settings(&config.Server{Builtin: builtin, Server: read})
		if got.Era != want[0] || got.Replicas != want[1] || got.Isolation != read.Isolation {
			t.Errorf("Settings of builtin %q = %+v, want era and replicas %q", builtin, got, want)
		}
	}
}
