package config

import (
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/form"
	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/keypath"
	"github.com/mcpbridge/mcpbridge/internal/config/problem"
	"github.com/mcpbridge/mcpbridge/internal/config/secret"
	"github.com/mcpbridge/mcpbridge/internal/hosts"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A checker finds mistakes that involve several keys, or the meaning of a value.
type checker struct {
	rep          *problem.Report
	mayMakeToken bool
	oneUser      bool
}

// MinMemory is the least that limits.memory may be, in bytes.
const MinMemory = 64 << 20

// check reports the mistakes of the whole configuration.
func (cfg *Config) check(rep *problem.Report, o *Options) {
	c := &checker{rep: rep, mayMakeToken: o.MayMakeToken, oneUser: o.OneUser}
	c.listen(cfg)
	c.origins(cfg)
	c.proxies(cfg)
	c.stateKeys(cfg)
	c.auth(cfg)
	if cfg.StateDir != "" && !filepath.IsAbs(cfg.StateDir) {
		c.rep.Fail("state_dir", "%q is relative; write an absolute path, such as /var/lib/mcpbridge", cfg.StateDir)
	}
	c.borders(cfg)
	cfg.Replicas.Check(c.rep, cfg.Listen, cfg.Admin)
	c.logins(cfg)
	if m := cfg.Limits.Memory; m != 0 && m < MinMemory {
		c.rep.Fail(keypath.Join("limits", "memory"), "is less than %s, which the process needs itself; write more, or 0 for half of what the machine has", form.Size(MinMemory))
	}
	if len(cfg.Servers) == 0 && len(rep.Errors) == 0 {
		c.rep.Fail("servers", "no servers; add one, for example notebook: {builtin: notebook}")
	}
	enabled := 0
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		c.name(s)
		if !s.Disabled {
			enabled++
			c.server(s)
			c.upstreamAuth(cfg, s)
			c.policy(cfg, s, keypath.Join("servers", s.Name))
		}
	}
	if enabled == 0 && len(cfg.Servers) > 0 {
		c.rep.Fail("servers", "every server is disabled; enable one")
	}
}

// listen refuses an address that other machines can reach where nothing says who clients
// are. At a terminal a token is made instead.
func (c *checker) listen(cfg *Config) {
	host, port, err := net.SplitHostPort(cfg.Listen)
	if err != nil || !form.IsPort(port) {
		c.rep.Fail("listen", "%q is not an address; write host:port, as in %s", cfg.Listen, form.OnLoopback(cfg.Listen))
		return
	}
	written, unsaid := cfg.anonymous()
	switch {
	case form.Loopback(host) || cfg.AllowAnonymous || !written && !unsaid:
		return
	case c.mayMakeToken && !written:
		cfg.MakeToken = true
		return
	}
	c.rep.Fail("listen", "%q can be reached from other machines, and nothing says who clients are; write a token that mcpbridge token makes below auth, or %s here, or set allow_anonymous: true", cfg.Listen, form.OnLoopback(port))
}

func (c *checker) origins(cfg *Config) {
	for i, o := range cfg.AllowedOrigins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
			c.rep.Fail(keypath.Join("allowed_origins", strconv.Itoa(i)), "%q is not an origin; write scheme://host, as in https://app.example.com", o)
		}
	}
	for i, h := range cfg.AllowedHosts {
		if !form.IsHost(h) {
			c.rep.Fail(keypath.Join("allowed_hosts", strconv.Itoa(i)), "%q is not a host name; write one such as mcp.example.com, without a port", h)
		}
	}
}

// proxies checks trusted_proxies, which are networks or single addresses.
func (c *checker) proxies(cfg *Config) {
	for i, p := range cfg.TrustedProxies {
		if _, err := form.Network(p); err != nil {
			c.rep.Fail(keypath.Join("trusted_proxies", strconv.Itoa(i)), "%q is neither a network nor an address; write one such as 10.0.0.0/8 or 192.0.2.7", p)
		}
	}
}

// stateKeys checks state_keys. Its errors never contain a key.
func (c *checker) stateKeys(cfg *Config) {
	secret.CheckKeys(c.rep, "state_keys", cfg.StateKeys)
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (c *checker) name(s *Server) {
	if !nameForm.MatchString(s.Name) {
		c.rep.Fail(keypath.Join("servers", s.Name), "a server's name is part of its endpoint's path; use letters, digits, dots, - and _, at most 64")
	}
}

func (c *checker) server(s *Server) {
	path := keypath.Join("servers", s.Name)
	c.transport(s, path)
	if s.URL != "" {
		c.url(s, path)
	}
	for name := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(s.Env[name], "\x00") {
			c.rep.Fail(keypath.Join(path, "env"), "contains a variable with an empty name, = in its name, or a zero byte; correct or remove it")
		}
	}
	c.extensions(s, path)
	c.roots(s, path)
	c.cache(s, path)
	if t := s.Timeouts; t.Request > t.Max {
		c.rep.Fail(keypath.Join(path, "timeouts"), "request (%s) is longer than max (%s); max bounds a request whatever its progress", hosts.DurationText(t.Request), hosts.DurationText(t.Max))
	}
}

// extensions checks extensions.hide. The tasks extension has a key of its own.
func (c *checker) extensions(s *Server, path string) {
	for i, name := range s.Extensions.Hide {
		here := keypath.Join(path, "extensions", "hide", strconv.Itoa(i))
		switch name {
		case "":
			c.rep.Fail(here, "is empty; write an extension's name, such as io.modelcontextprotocol/ui, or remove it")
		case spec.ExtensionTasks:
			c.rep.Fail(here, "hides the extension alone, and not the methods of tasks; remove it, and set tasks: off for the server")
		}
	}
}

// roots checks that roots are file URIs. Spec: 2025-11-25, client/roots, Root.
func (c *checker) roots(s *Server, path string) {
	for i, root := range s.Roots {
		u, err := url.Parse(root)
		if err != nil || u.Scheme != "file" || !strings.HasPrefix(u.Path, "/") || strings.ContainsFunc(root, func(r rune) bool { return r <= ' ' }) {
			c.rep.Fail(keypath.Join(path, "roots", strconv.Itoa(i)), "is not a file URI; write one such as file:///home/ada/notes, a space as %%20")
		}
	}
}

// cache finds methods with keep: true whose results the gateway can't cache.
func (c *checker) cache(s *Server, path string) {
	for _, method := range slices.Sorted(maps.Keys(s.Cache)) {
		h := s.Cache[method]
		if h.Keep == nil || !*h.Keep || h.keepable(method) {
			continue
		}
		here := keypath.Join(path, "cache", method, "keep")
		if method == spec.MethodDiscover {
			c.rep.Fail(here, "the gateway answers %s itself, so there is nothing to cache; remove it", method)
		} else {
			c.rep.Fail(here, "the gateway caches only public results, for their ttl; set scope: public and a ttl, or remove it")
		}
	}
}

// transport checks that exactly one transport is configured, and no key of another one.
func (c *checker) transport(s *Server, path string) {
	var ways []string
	for _, w := range s.ways() {
		ways = append(ways, w[0])
	}
	switch {
	case len(ways) == 0 && c.rep.Mistaken(path):
		return // its transport was refused before
	case len(ways) == 0:
		c.rep.Fail(path, "has no builtin, command or url; set one of them")
		return
	case len(ways) > 1:
		c.rep.Fail(path, "%s are both set; remove one of them", strings.Join(ways, " and "))
		return
	}
	c.typ(s, path, ways[0])
	if s.Type == "sse" && s.Era == spec.Modern.String() {
		c.rep.Fail(keypath.Join(path, "era"), "modern does not fit type sse, which only legacy servers have; remove one of them")
	}
	for _, owner := range []string{"command", "url"} {
		if owner != ways[0] {
			c.belongs(s, path, owner, ways[0])
		}
	}
}

// typ checks that type agrees with the key that is set, command or url.
func (c *checker) typ(s *Server, path, way string) {
	fit := map[string][]string{"command": {"stdio"}, "url": {"http", "sse"}}[way]
	if s.OverWebSocket() {
		fit = []string{"ws"}
	}
	switch {
	case s.Type == "" || slices.Contains(fit, s.Type):
	case way == "url" && s.Type != "stdio":
		c.rep.Fail(keypath.Join(path, "type"), "%s does not fit the scheme of url; ws goes with ws:// and wss://, http and sse with http:// and https://", s.Type)
	default:
		c.rep.Fail(keypath.Join(path, "type"), "%s does not fit a server with %s; remove it", s.Type, way)
	}
}

// belongs refuses keys of s that only servers with the key owner may have.
func (c *checker) belongs(s *Server, path, owner, way string) {
	for _, name := range serverKey.Spelled() {
		if k := serverKey.ByName[name]; k.Name == name && k.Owner == owner && c.has(s, k, path) {
			c.rep.Fail(keypath.Join(path, name), "belongs to servers with %s; this one has %s, so remove it", owner, way)
		}
	}
}

// has reports whether k is set for s. An inherited value is not set.
func (c *checker) has(s *Server, k *key.Key, path string) bool {
	if k.Inherits != "" {
		return c.rep.Written(keypath.Join(path, k.Name))
	}
	v := reflect.ValueOf(s).Elem().Field(k.Index)
	switch v.Kind() {
	case reflect.Pointer, reflect.Struct:
		return !v.IsZero()
	}
	return v.Len() > 0
}

// url checks the URL and the headers. Its errors don't contain the URL, whose query may
// contain a key.
func (c *checker) url(s *Server, path string) {
	here := keypath.Join(path, "url")
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || !s.OverWebSocket() && u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		c.rep.Fail(here, "is not a URL of an MCP server; write one such as https://docs.example.com/mcp, or wss://docs.example.com/mcp")
	case u.User != nil:
		c.rep.Fail(here, "contains a user name or password, which would appear in logs; write them below headers, as Authorization")
	case u.Fragment != "":
		c.rep.Fail(here, "has a fragment (#…), which is never sent; remove it")
	}
	for name, value := range s.Headers {
		c.header(keypath.Join(path, "headers", name), name, value)
	}
}

// reserved are the headers that the transport sets.
//
// Spec: 2025-11-25, basic/transports, Streamable HTTP.
var reserved = []string{
	"accept", "connection", "content-length", "content-type", "host", "last-event-id",
	"mcp-protocol-version", "mcp-session-id", "sec-websocket-extensions", "sec-websocket-key",
	"sec-websocket-protocol", "sec-websocket-version", "transfer-encoding", "upgrade",
}

// headerName is a token. Spec: RFC 9110, 5.1.
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

func (c *checker) header(path, name, value string) {
	switch {
	case !headerName.MatchString(name):
		c.rep.Fail(path, "is not a header's name; use letters, digits and -")
	case slices.Contains(reserved, strings.ToLower(name)):
		c.rep.Fail(path, "is set by mcpbridge itself; remove it")
	case strings.ContainsFunc(value, isControl):
		c.rep.Fail(path, "contains a line break or another control character, which no header can have; check the source of the value")
	}
}
