package hostfile

import (
	"strings"

	"github.com/tailscale/hujson"
)

// unwrapped returns the server's text without what [Edit.wrapped] has added, or nil if
// that can't be determined. was is the server before, or nil.
func (e *Edit) unwrapped(en, was *entry) []byte {
	args := en.args()
	at := afterName(args)
	v, o := en.clone()
	list, ok := member(o, "args").Value.Value.(*hujson.Array)
	switch {
	case !ok || at >= len(args):
		return nil
	case args[at] == "--" && at+1 < len(args):
		member(o, "command").Value.Value = hujson.String(args[at+1])
		if chop(list, at+2); len(list.Elements) == 0 {
			remove(o, "args")
		}
	case args[at] != "--" && at == len(args)-1:
		e.unwrapURL(en, was, o, args[at])
	default:
		return nil
	}
	return v.Pack()
}

// afterName returns where the arguments of wrap go on behind its flag.
func afterName(args []string) int {
	at := 1
	for at+1 < len(args) && args[at] == "--name" {
		at += 2
	}
	return at
}

func (e *Edit) unwrapURL(en, was *entry, o *hujson.Object, target string) {
	key := map[*Host]string{windsurf: "serverUrl", gemini: "httpUrl"}[e.Host]
	if key == "" {
		key = "url"
	}
	if was != nil && was.object != nil {
		if m := was.urlMember(was.object); m != nil {
			key = nameOf(m)
		}
	}
	m := member(o, "command")
	m.Name.Value, m.Value.Value = hujson.String(key), hujson.String(target)
	sse := headersFromEnv(o, key)
	remove(o, "args")
	for _, name := range []string{"type", "transportType"} {
		if t := member(o, name); t != nil && textOf(&t.Value) == "stdio" {
			t.Value.Value = hujson.String(typeBefore(was, name, sse))
		}
	}
}

// typeBefore returns the earlier value of a key for the transport.
func typeBefore(was *entry, key string, sse bool) string {
	if was != nil && was.string(key) != "" {
		return was.string(key)
	}
	if sse {
		return "sse"
	}
	return "http"
}

// headersFromEnv converts environment variables for mcpbridge back to headers, and to the
// URL below urlKey. It reports whether a variable selects HTTP+SSE.
func headersFromEnv(o *hujson.Object, urlKey string) (sse bool) {
	env := member(o, "env")
	if env == nil {
		return false
	}
	vars, ok := env.Value.Value.(*hujson.Object)
	if !ok {
		return false
	}
	table := &hujson.Object{}
	for _, name := range namesOf(vars) {
		rest, ours := strings.CutPrefix(name, "MCPBRIDGE_SERVERS__")
		_, key, ok := strings.Cut(rest, "__")
		header, isHeader := strings.CutPrefix(key, "HEADERS__")
		switch {
		case !ours || !ok:
			continue
		case isHeader:
			add(table, headerName(header), member(vars, name).Value.Value)
		case key == "URL":
			member(o, urlKey).Value.Value = member(vars, name).Value.Value
		case key == "TYPE":
			sse = textOf(&member(vars, name).Value) == "sse"
		default:
			continue
		}
		remove(vars, name)
	}
	switch {
	case len(vars.Members) == 0 && len(table.Members) > 0:
		env.Name.Value, env.Value.Value = hujson.String("headers"), table
	case len(vars.Members) == 0:
		remove(o, "env")
	case len(table.Members) > 0:
		insertAfter(o, env, "headers", table)
	}
	return sse
}

// headerName returns the usual spelling of an upper-case header name: Authorization.
func headerName(name string) string {
	if strings.ContainsAny(name, "-_") || name == "" {
		return name
	}
	return name[:1] + strings.ToLower(name[1:])
}

func namesOf(o *hujson.Object) []string {
	var names []string
	for _, m := range membersOf(o) {
		names = append(names, nameOf(m))
	}
	return names
}
