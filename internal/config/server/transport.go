package server

import (
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// transport checks that exactly one transport is configured, and no key of another one.
func (c checker) transport(of *key.Key) {
	var ways []string
	for _, w := range c.Ways() {
		ways = append(ways, w[0])
	}
	switch {
	case len(ways) == 0 && c.rep.Mistaken(c.path):
		return // its transport was refused before
	case len(ways) == 0 && !c.rep.InFile(c.path):
		c.rep.Fail(c.path, "is in no file; correct the server's name, or set its builtin, command or url, too")
		return
	case len(ways) == 0:
		c.rep.Fail(c.path, "has no builtin, command or url; set one of them")
		return
	case len(ways) > 1:
		c.rep.Fail(c.path, "%s are both set; remove one of them", strings.Join(ways, " and "))
		return
	}
	c.typ(ways[0])
	if c.Type == "sse" && (c.Era == spec.Modern.String() || c.ByClient()) {
		c.rep.Fail(key.Join(c.path, "era"), "%s does not fit type sse, which only legacy servers have; remove one of them", c.Era)
	}
	if c.ByClient() && ways[0] == "command" && c.Isolation == settings.IsolateNothing {
		c.rep.Fail(key.Join(c.path, "era"), "client means a process for each era, and isolation: shared one for all clients; remove one of them")
	}
	for _, owner := range []string{"command", "url"} {
		if owner != ways[0] {
			c.belongs(of, owner, ways[0])
		}
	}
}

// typ checks that type agrees with the key that is set, command or url.
func (c checker) typ(way string) {
	fit := map[string][]string{"command": {"stdio"}, "url": {"http", "sse"}}[way]
	if c.OverWebSocket() {
		fit = []string{"ws"}
	}
	switch {
	case c.Type == "" || slices.Contains(fit, c.Type):
	case way == "url" && c.Type != "stdio":
		c.rep.Fail(key.Join(c.path, "type"), "%s does not fit the scheme of url; ws goes with ws:// and wss://, http and sse with http:// and https://", c.Type)
	default:
		c.rep.Fail(key.Join(c.path, "type"), "%s does not fit a server with %s; remove it", c.Type, way)
	}
}

// belongs refuses keys of s that only servers with the key owner may have.
func (c checker) belongs(of *key.Key, owner, way string) {
	var wrong []string
	for _, k := range of.Fields {
		if k.Owner == owner && c.has(k) {
			wrong = append(wrong, k.Name)
		}
	}
	slices.Sort(wrong)
	for _, name := range wrong {
		c.rep.Fail(key.Join(c.path, name), "belongs to servers with %s; this one has %s, so remove it", owner, way)
	}
}

// has reports whether k is set for s. An inherited value is not set.
func (c checker) has(k *key.Key) bool {
	if k.Inherits != "" {
		return c.rep.Written(key.Join(c.path, k.Name))
	}
	v := reflect.ValueOf(c.Options).Elem().FieldByIndex(k.Index)
	switch v.Kind() {
	case reflect.Pointer, reflect.Struct, reflect.Bool:
		return !v.IsZero()
	}
	return v.Len() > 0
}

// url checks the URL and the headers. Its errors don't contain the URL, whose query may
// contain a key.
func (c checker) url() {
	here := key.Join(c.path, "url")
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || !c.OverWebSocket() && u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		c.rep.Fail(here, "is not a URL of an MCP server; write one such as https://docs.example.com/mcp, or wss://docs.example.com/mcp")
	case u.User != nil:
		c.rep.Fail(here, "contains a user name or password, which would appear in logs; write them below headers, as Authorization")
	case u.Fragment != "":
		c.rep.Fail(here, "has a fragment (#…), which is never sent; remove it")
	}
	for name, value := range c.Headers {
		c.header(key.Join(c.path, "headers", name), name, value)
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

func (c checker) header(path, name, value string) {
	switch {
	case !headerName.MatchString(name):
		c.rep.Fail(path, "is not a header's name; use letters, digits and -")
	case slices.Contains(reserved, strings.ToLower(name)):
		c.rep.Fail(path, "is set by mcpbridge itself; remove it")
	case strings.ContainsFunc(value, isControl):
		c.rep.Fail(path, "contains a line break or another control character, which no header can have; check the source of the value")
	}
}
