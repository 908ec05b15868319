package main

import (
	"log/slog"
	"net/http"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// Every key arrives where it is meant to: each has a value here that is not its
// default.
func TestConfigArrives(t *testing.T) {
	path := configFile(t, `
allowed_origins: [https://app.example.com]
allowed_hosts: [mcp.example.com]
trusted_proxies: [10.1.2.3/8, 192.0.2.7]
state_keys: [0123456789abcdef]
body_timeout: 1s
write_timeout: 2s
keep_alive: 3s
drain: 8s
client_idle: 23s
limits: {body: 2KiB, depth: 9, memory: 128MiB, command_sessions: 3, command_sessions_each: 2, id: 103, progress_token: 104, method: 105, uri: 306, filter: 307, client_info: 308, capabilities: 309, requests: 101, requests_each: 102, upstream_message: 3KiB, sessions: 4, client_sessions: 11, client_sessions_each: 12, client_events: 4KiB, websockets: 13, websockets_each: 14, streams: 5, listen_topics: 6, parked: 7, parked_each: 8, cache: 1MiB, cache_entries: 10}
servers:
  web:
    url: https://docs.example.com/mcp
    headers: {X-Key: k}
    isolation: shared
    client_info: client
    subresources: as-sent
    extensions: {hide: [com.example/x]}
    tasks: off
    lanes: {stdio: 2, http: 3}
    gather: 11ms
    parked_ttl: 12s
    roots: ["file:///a", "file:///b%20c"]
    idle: 13s
    linger: 14s
    synthesize: {tools: 19s, prompts: 20s, resources: 21s, updates: 22s}
    timeouts: {connect: 15s, request: 16s, max: 17s}
    cache: {tools/list: {ttl: 18s, scope: public}}
  child: {command: x, lanes: {stdio: 2, http: 3}}
  socket: {url: "wss://docs.example.com/mcp", type: ws, headers: {X-Key: k}, lanes: {stdio: 2, http: 3}}
  old: {url: "https://docs.example.com/sse", type: sse}
`)
	c, warnings, err := config.Load(config.Options{Path: path})
	if err != nil || len(warnings) != 0 {
		t.Fatalf("Load = %v, %v", warnings, err)
	}
	log := slog.New(slog.DiscardHandler)
	web := &builder{config: c, server: &c.Servers[0], log: log}
	child := &builder{config: c, server: &c.Servers[1], log: log}
	socket := &builder{config: c, server: &c.Servers[2], log: log}

	if got, want := gatewayOptions(c), (gateway.Options{
		Memory: 64 << 20, MaxBody: 2 << 10, MaxDepth: 9, MaxRequests: 101, MaxRequestsEach: 102,
		Lengths:    mcp.Lengths{ID: 103, ProgressToken: 104, Method: 105, URI: 306, Filter: 307, ClientInfo: 308, Capabilities: 309},
		MaxStreams: 5, MaxTopics: 6, MaxParked: 7, MaxParkedEach: 8,
		MaxSessions: 11, MaxSessionsEach: 12, MaxStored: 4 << 10, MaxSockets: 13, MaxSocketsEach: 14, SessionIdle: 23 * time.Second,
		CacheEntries: 10, CacheBytes: 1 << 20, StateKeys: []string{"0123456789abcdef"},
		BodyTimeout: time.Second, WriteTimeout: 2 * time.Second, KeepAlive: 3 * time.Second, Drain: 4 * time.Second,
		AllowedHosts: []string{"mcp.example.com"}, AllowedOrigins: []string{"https://app.example.com"},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.7/32")},
	}); !reflect.DeepEqual(got, want) {
		t.Errorf("gateway options = %+v\nwant %+v", got, want)
	}

	hidden := []string{"com.example/x", spec.ExtensionTasks}
	if got := web.modernOptions().HideExtensions; !reflect.DeepEqual(got, hidden) {
		t.Errorf("modern options hide %q, want %q", got, hidden)
	}
	server := web.serverOptions()
	server.Open = nil // functions don't compare
	if want := (gateway.ServerOptions{
		Name: "web", Isolation: gateway.IsolateNothing, Gather: 11 * time.Millisecond, ParkedTTL: 12 * time.Second, Patience: 15 * time.Second,
		Keep: []string{"tools/list"}, ForwardClientInfo: true, HideExtensions: hidden,
	}); !reflect.DeepEqual(server, want) {
		t.Errorf("server options = %+v\nwant %+v", server, want)
	}

	back := web.backOptions()
	back.Logger, back.Metrics = nil, nil
	if want := (legacyback.Options{
		Name: "web", URL: "https://docs.example.com/mcp", Headers: http.Header{"X-Key": {"k"}}, ClientInfo: implementation(),
		Roots: []byte(`[{"uri":"file:///a"},{"uri":"file:///b%20c"}]`), Lanes: 3, KeepLane: true,
		Synthesize: legacyback.Synthesize{Tools: 19 * time.Second, Prompts: 20 * time.Second, Resources: 21 * time.Second, Updates: 22 * time.Second},
		Timeouts:   legacyback.Timeouts{Connect: 15 * time.Second, Request: 16 * time.Second, Max: 17 * time.Second},
		Idle:       13 * time.Second, Linger: 14 * time.Second, Subscribes: 200, MaxSessions: 4, MaxMessage: 3 << 10,
		Subresources: legacyback.SubresourcesAsSent, HideExtensions: hidden,
		Cache: map[string]mcp.CacheHint{"tools/list": {TTL: 18_000, Public: true}},
	}); !reflect.DeepEqual(back, want) {
		t.Errorf("back options = %+v\nwant %+v", back, want)
	}
	old := &builder{config: c, server: &c.Servers[3], log: log}
	if got, era := old.backOptions().Transport, old.era(); got != legacyback.TransportSSE || era != spec.Legacy {
		t.Errorf("of type sse: transport %q, era %v, want sse and legacy", got, era)
	}
	if got := web.era(); got != spec.Unknown {
		t.Errorf("of no type: era %v, want it found out", got)
	}
	if got := child.backOptions(); got.MaxSessions != 3 || got.MaxSessionsEach != 2 {
		t.Errorf("back options of a command: %d sessions, %d each, want 3 and 2", got.MaxSessions, got.MaxSessionsEach)
	}
	if got := child.backOptions(); got.Lanes != 2 || got.KeepLane || got.Roots != nil {
		t.Errorf("back options of a command: %d lanes, kept %v, roots %s, want 2, false, none", got.Lanes, got.KeepLane, got.Roots)
	}
	if got := socket.backOptions(); got.Lanes != 3 || got.Dial == nil || got.URL != "" || got.Headers != nil {
		t.Errorf("back options of a WebSocket: %d lanes, URL %q, headers %v, want 3 and what dials", got.Lanes, got.URL, got.Headers)
	}
	if got := socket.modernOptions(); got.Dial == nil || got.URL != "" {
		t.Errorf("modern options of a WebSocket: URL %q, want what dials", got.URL)
	}
}

func TestWhoTunesTheCollectorGetsNoBallast(t *testing.T) {
	for _, tt := range []struct {
		environ []string
		want    bool
	}{
		{nil, true},
		{[]string{"HOME=/root", "XGOGC=1"}, true},
		{[]string{"HOME=/root", "GOGC=50"}, false},
		{[]string{"GOMEMLIMIT=64MiB"}, false},
	} {
		if got := roomForGarbage(1<<30, tt.environ) != nil; got != tt.want {
			t.Errorf("roomForGarbage(%q) gives a ballast: %v, want %v", tt.environ, got, tt.want)
		}
	}
}
