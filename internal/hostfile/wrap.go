package hostfile

import (
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// urlKeys are the keys for a URL, in order of precedence.
var urlKeys = []string{"httpUrl", "serverUrl", "url", "baseUrl"}

func (en *entry) urlMember(o *hujson.Object) *hujson.ObjectMember {
	for _, key := range urlKeys {
		if m := member(o, key); m != nil {
			return m
		}
	}
	return nil
}

// isWrapped reports whether the server's command is mcpbridge wrap.
func (en *entry) isWrapped(binary string) bool {
	args := en.args()
	command := en.string("command")
	base := strings.TrimSuffix(filepath.Base(strings.ReplaceAll(command, `\`, "/")), ".exe")
	return len(args) > 1 && args[0] == "wrap" && (command == binary || base == "mcpbridge")
}

// logins are the keys with which the host logs in to a server, or creates headers for it.
var logins = []string{"oauth", "oauth_resource", "scopes", "auth", "authProviderType", "headersHelper"}

// credentials are the keys with which the file gives them to the host.
var credentials = []string{"headers", "http_headers", "env_http_headers", "bearer_token_env_var"}

// reasonToSkip returns why the server must not be changed, or "".
func (e *Edit) reasonToSkip(en *entry) string {
	if en.object == nil {
		return "is not an object"
	}
	if en.isWrapped(e.Binary) {
		return "runs under mcpbridge already"
	}
	if en.string("command") != "" {
		return ""
	}
	m := en.urlMember(en.object)
	if m == nil || textOf(&m.Value) == "" {
		return e.whyNeither(en)
	}
	for _, key := range logins {
		if member(en.object, key) != nil {
			return e.Host.Title + " logs in to it (" + key + "), which mcpbridge can't do in its place"
		}
	}
	return e.reasonToSkipURL(en, textOf(&m.Value))
}

// whyNeither says why a server can't be changed that has no command and no URL.
func (e *Edit) whyNeither(en *entry) string {
	switch command := member(en.object, "command"); {
	case e.Host == zed && command == nil:
		return "is started by an extension of Zed, in which there is no command to change"
	case e.Host == zed && len(members(&command.Value)) > 0:
		return "has its command in the shape of older versions of Zed; have Zed rewrite its settings, and try again"
	}
	return "has neither a command nor a URL"
}

// reasonToSkipURL is reasonToSkip for a URL. Hosts log in by OAuth whenever a server
// requires it, and their files don't show that.
func (e *Edit) reasonToSkipURL(en *entry, target string) string {
	scheme, _, _ := strings.Cut(target, ":")
	if !strings.HasPrefix(target, "$") && !slices.Contains([]string{"http", "https", "ws", "wss"}, strings.ToLower(scheme)) {
		return "is reached in a way that mcpbridge does not know: " + scheme
	}
	named := slices.Contains(e.Only, en.name)
	has := func(key string) bool { return member(en.object, key) != nil }
	if !named && !slices.ContainsFunc(credentials, has) && !strings.Contains(target, "?") && !isLocal(target) {
		return "has no credentials in the file, so " + e.Host.Title + " may log in to it by OAuth, which mcpbridge can't do in its place; name it to wrap it all the same"
	}
	return ""
}

// reasonNotToPass returns why the server's headers can't be passed on to a mcpbridge of its own,
// or "".
func reasonNotToPass(en *entry) string {
	if en.object == nil || en.string("command") != "" {
		return ""
	}
	if m := member(en.object, "headers"); m != nil {
		for _, h := range members(&m.Value) {
			if strings.Contains(nameOf(h), "__") {
				return "has a header with __ in its name, which no environment variable can pass on"
			}
		}
	}
	return ""
}

func isLocal(target string) bool {
	u, err := url.Parse(target)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// wrapped returns the server's text with mcpbridge in front of its command, or instead of
// its URL.
func (e *Edit) wrapped(en *entry) (text []byte, note string) {
	if en.object == nil {
		return nil, ""
	}
	v, o := en.clone()
	if command := member(o, "command"); command != nil {
		e.wrapCommand(o, command)
		return v.Pack(), ""
	}
	m := en.urlMember(o)
	if m == nil {
		return nil, ""
	}
	if e.wrapURL(en, o, m) {
		note = "its headers are passed on by environment variables"
	}
	return v.Pack(), note
}

func (e *Edit) wrapCommand(o *hujson.Object, command *hujson.ObjectMember) {
	front := []string{"wrap", "--", textOf(&command.Value)}
	command.Value.Value = hujson.String(e.Binary)
	if m := member(o, "args"); m != nil {
		if list, ok := m.Value.Value.(*hujson.Array); ok {
			prepend(list, front)
			return
		}
	}
	insertAfter(o, command, "args", arrayOf(front))
}

// wrapURL replaces a URL by mcpbridge. It puts headers and a URL with a query into
// environment variables, because other users can see command lines. It reports whether
// there are headers.
func (e *Edit) wrapURL(en *entry, o *hujson.Object, m *hujson.ObjectMember) bool {
	name, prefix := variablePrefix(en.name)
	target := textOf(&m.Value)
	m.Name.Value, m.Value.Value = hujson.String("command"), hujson.String(e.Binary)
	sse := en.string("type") == "sse" || en.string("type") == "" && en.string("transportType") == "sse"
	for _, key := range []string{"type", "transportType"} {
		if t := member(o, key); t != nil {
			t.Value.Value = hujson.String("stdio")
		}
	}
	for _, key := range urlKeys {
		remove(o, key) // a second one without precedence
	}
	had := headersToEnv(o, prefix)
	if sse {
		setEnv(o, prefix+"TYPE", "sse")
	}
	shown, _, secret := strings.Cut(target, "?")
	if secret {
		setEnv(o, prefix+"URL", target)
	}
	insertAfter(o, member(o, "command"), "args", arrayOf([]string{"wrap", "--name", name, shown}))
	return had
}

// variablePrefix returns what a server is called under mcpbridge, and how the environment variables
// of its keys begin.
func variablePrefix(server string) (name, prefix string) {
	name = strings.Trim(strings.ReplaceAll(Name(server), "__", "_"), "-._")
	return name, "MCPBRIDGE_SERVERS__" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name)) + "__"
}

// headerVariable returns the environment variable of a header.
func headerVariable(prefix, name string) string {
	if !strings.ContainsAny(name, "-_") {
		name = strings.ToUpper(name)
	}
	return prefix + "HEADERS__" + name
}

// headersToEnv replaces headers by environment variables.
func headersToEnv(o *hujson.Object, prefix string) bool {
	m := member(o, "headers")
	if m == nil {
		return false
	}
	table, ok := m.Value.Value.(*hujson.Object)
	if !ok || len(table.Members) == 0 {
		remove(o, "headers")
		return false
	}
	for _, h := range membersOf(table) {
		h.Name.Value = hujson.String(headerVariable(prefix, nameOf(h)))
	}
	if env := member(o, "env"); env != nil {
		if vars, ok := env.Value.Value.(*hujson.Object); ok {
			for _, h := range table.Members {
				add(vars, h.Name.Value.(hujson.Literal).String(), h.Value.Value)
			}
		}
		remove(o, "headers")
		return true
	}
	m.Name.Value = hujson.String("env")
	return true
}

func setEnv(o *hujson.Object, name, value string) {
	env := member(o, "env")
	if env == nil {
		env = insertAfter(o, &o.Members[len(o.Members)-1], "env", &hujson.Object{})
	}
	if vars, ok := env.Value.Value.(*hujson.Object); ok {
		add(vars, name, hujson.String(value))
	}
}
