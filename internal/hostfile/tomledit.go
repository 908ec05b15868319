package hostfile

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// installTOML is [Edit.Install] for Codex.
func (e *Edit) installTOML(data []byte) ([]byte, []Change, error) {
	f, err := parseTOML(data)
	if err != nil {
		return nil, nil, err
	}
	chosen, err := e.chosen(tomlEntries(f))
	if err != nil {
		return nil, nil, err
	}
	var hunks []hunk
	var outcomes []Change
	for _, en := range chosen {
		if why := cmp.Or(e.reasonToSkip(en), reasonNotToPassTOML(en)); why != "" {
			outcomes = append(outcomes, Change{Server: en.name, Why: why})
			continue
		}
		made, note := e.wrapTOML(f, en)
		hunks = append(hunks, made...)
		outcomes = append(outcomes, Change{Server: en.name, Changed: true, Why: note})
	}
	return apply(data, inOrder(hunks)), outcomes, nil
}

// reasonNotToPassTOML returns why what Codex does for a server can't be passed on to a mcpbridge of
// its own, or "".
func reasonNotToPassTOML(en *entry) string {
	switch {
	case en.object == nil:
		return ""
	case !isTexts(valueOf(en.toml.node, "args")):
		return "has args that are no list of texts"
	case en.string("command") != "":
		return ""
	case en.toml.at("url") == nil:
		return "has neither a command nor a URL"
	}
	for _, key := range []string{"bearer_token_env_var", "env_http_headers"} {
		if member(en.object, key) != nil {
			return "has a header from the environment (" + key + "), which only the one entry of --all passes on"
		}
	}
	for _, h := range pairs(valueOf(en.toml.node, "http_headers")) {
		if strings.Contains(h.name(), "__") {
			return "has a header with __ in its name, which no environment variable can pass on"
		}
	}
	return ""
}

// wrapTOML returns the changes that put mcpbridge in front of a server's command, or in the place
// of its URL.
func (e *Edit) wrapTOML(f *tomlFile, en *entry) (hunks []hunk, note string) {
	s := en.toml
	command := s.at("command")
	if command == nil {
		return e.wrapURLTOML(f, en)
	}
	hunks = []hunk{{command.value, command.to, tomlText(e.Binary)}}
	front := []string{"wrap", "--", command.node.Value}
	if args := s.at("args"); args == nil {
		hunks = append(hunks, f.after(command, "args = "+tomlList(front)))
	} else {
		hunks = append(hunks, f.prepend(args, front))
	}
	return hunks, ""
}

// unfit reports whether a server could not have been changed.
func (en *entry) unfit() bool {
	return en.object == nil || !isTexts(valueOf(en.toml.node, "args")) || en.string("command") == "" && (en.string("url") == "" || en.toml.at("url") == nil)
}

// prepend returns the change that puts texts before those of a list, laid out as they are.
func (f *tomlFile) prepend(list *setting, words []string) hunk {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = tomlText(w)
	}
	at := list.value + 1
	if len(list.items) == 0 {
		return hunk{at, at, strings.Join(all, ", ")}
	}
	first := max(list.items[0], at)
	separator := ", "
	if nl := bytes.LastIndexByte(f.data[at:first], '\n'); nl >= 0 {
		separator = "," + f.eol() + string(f.data[at+nl+1:first])
	}
	return hunk{first, first, strings.Join(all, separator) + separator}
}

func (e *Edit) wrapURLTOML(f *tomlFile, en *entry) (hunks []hunk, note string) {
	s := en.toml
	url := s.at("url")
	name, prefix := variablePrefix(en.name)
	var env []string
	for _, h := range pairs(valueOf(s.node, "http_headers")) {
		env = append(env, tomlKey(headerVariable(prefix, h.name()))+" = "+tomlText(h.value.Value))
		note = "its headers are passed on by environment variables"
	}
	shown, _, secret := strings.Cut(url.node.Value, "?")
	if secret {
		env = append(env, tomlKey(prefix+"URL")+" = "+tomlText(url.node.Value))
	}
	lines := []string{"args = " + tomlList([]string{"wrap", "--name", name, shown})}
	if len(env) > 0 {
		lines = append(lines, "env = { "+strings.Join(env, ", ")+" }")
	}
	hunks = []hunk{{url.keys[len(url.keys)-1], url.to, "command = " + tomlText(e.Binary)}, f.after(url, lines...)}
	return append(hunks, f.without(s.below("http_headers"))...), note
}

// eol is what lines of the file end with.
func (f *tomlFile) eol() string {
	if bytes.Contains(f.data, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// lineOf returns where the line of an offset begins, where its text ends, and where the next one
// begins.
func (f *tomlFile) lineOf(from, to int) (begin, end, next int) {
	begin = bytes.LastIndexByte(f.data[:from], '\n') + 1
	if begin == 0 && bytes.HasPrefix(f.data, byteOrderMark) {
		begin = min(from, len(byteOrderMark))
	}
	n := bytes.IndexByte(f.data[to:], '\n')
	if n < 0 {
		return begin, len(f.data), len(f.data)
	}
	end, next = to+n, to+n+1
	if end > to && f.data[end-1] == '\r' {
		end--
	}
	return begin, end, next
}

// after returns the change that sets something beside a setting, after it.
func (f *tomlFile) after(s *setting, settings ...string) hunk {
	prefix := string(f.data[s.from:s.keys[len(s.keys)-1]])
	at, separator := s.to, ", "
	if s.within == nil {
		begin, end, _ := f.lineOf(s.from, s.to)
		at, separator = end, f.eol()+string(f.data[begin:s.from])
	}
	text := ""
	for _, set := range settings {
		text += separator + prefix + set
	}
	return hunk{at, at, text}
}

// without returns the changes that remove settings: whole lines, or members of an inline table,
// of which others stay.
func (f *tomlFile) without(settings []*setting) (hunks []hunk) {
	for _, s := range settings {
		if s.within == nil {
			begin, _, next := f.lineOf(s.from, s.to)
			hunks = append(hunks, hunk{from: begin, to: next})
			continue
		}
		around := s.within.inner
		i := slices.Index(around, s)
		stays := slices.IndexFunc(around, func(o *setting) bool { return !slices.Contains(settings, o) })
		switch {
		case stays < 0 || stays < i:
			hunks = append(hunks, hunk{from: around[max(i-1, 0)].to, to: s.to})
		default: // those before the first that stays go with what is behind them
			hunks = append(hunks, hunk{from: s.from, to: around[i+1].from})
		}
	}
	return hunks
}

// uninstallTOML is [Edit.Uninstall] for Codex.
func (e *Edit) uninstallTOML(data, copied []byte) ([]byte, []Change, error) {
	f, err := parseTOML(data)
	if err != nil {
		return nil, nil, err
	}
	entries := tomlEntries(f)
	chosen, err := e.chosen(entries)
	if err != nil {
		return nil, nil, err
	}
	exact := make(map[string][]hunk)
	var before *tomlFile
	if copied != nil {
		if before, err = parseTOML(copied); err != nil {
			return nil, nil, err
		}
		exact = e.exactly(f, entries, before)
	}
	for {
		out, outcomes := e.unwrapAll(f, chosen, exact)
		now, err := parseTOML(out)
		if err != nil && len(exact) == 0 {
			return nil, nil, err
		}
		others := len(exact)
		for name := range exact { // none may have got what is another one's
			if err != nil || !now.sameTransport(name, before) {
				delete(exact, name)
			}
		}
		if len(exact) == others {
			return out, outcomes, nil
		}
	}
}

// exactly returns the changes that make servers what they were, of those whose lines are as they
// were installed.
func (e *Edit) exactly(f *tomlFile, entries []*entry, was *tomlFile) map[string][]hunk {
	old := make(map[string]*entry)
	for _, en := range tomlEntries(was) {
		old[en.name] = en
	}
	type made struct {
		hunk
		server string
	}
	var all []made
	for _, en := range entries {
		before := old[en.name]
		if before == nil || !en.isWrapped(e.Binary) || before.isWrapped(e.Binary) || before.unfit() {
			continue
		}
		as := &Edit{Host: e.Host, Binary: en.string("command")}
		hunks, _ := as.wrapTOML(was, before)
		for _, h := range hunks {
			all = append(all, made{h, en.name})
		}
	}
	slices.SortStableFunc(all, func(a, b made) int { return a.from - b.from })
	hunks := make([]hunk, len(all))
	for i := range all {
		hunks[i] = all[i].hunk
	}
	out, changed := make(map[string][]hunk), make(map[string]bool)
	for i, h := range takeBack(was.data, hunks, f.data, false) {
		if name := all[i].server; h == nil {
			changed[name] = true
		} else {
			out[name] = append(out[name], *h)
		}
	}
	for name := range changed {
		delete(out, name)
	}
	return out
}

// unwrapAll takes mcpbridge out of servers, of some by the changes that are known to be exact.
func (e *Edit) unwrapAll(f *tomlFile, entries []*entry, exact map[string][]hunk) ([]byte, []Change) {
	var hunks []hunk
	var outcomes []Change
	for _, en := range entries {
		if !en.isWrapped(e.Binary) {
			outcomes = append(outcomes, Change{Server: en.name, Why: "does not run under mcpbridge"})
			continue
		}
		done := Change{Server: en.name, Changed: true, Why: "as it was"}
		made := exact[en.name]
		if made == nil {
			done.Why = changedSince
			if made = f.unwrapped(en); made == nil {
				done = Change{Server: en.name, Why: changedTooMuch}
			}
		}
		hunks, outcomes = append(hunks, made...), append(outcomes, done)
	}
	return apply(f.data, inOrder(hunks)), outcomes
}

// sameTransport reports whether a server is reached as in another file.
func (f *tomlFile) sameTransport(server string, before *tomlFile) bool {
	now, was := f.serverOf(server), before.serverOf(server)
	keys := []string{"command", "args"}
	if valueOf(was, "command") == nil {
		keys = append(keys, "url", "http_headers", "env")
	}
	return !slices.ContainsFunc(keys, func(key string) bool {
		return !bytes.Equal(jsonOf(valueOf(now, key)), jsonOf(valueOf(was, key)))
	})
}

// serverOf returns what is set of a server, or nil.
func (f *tomlFile) serverOf(name string) *yaml.Node {
	if n := f.nodes[codexTable+"\x00"+name]; n != nil {
		return n
	}
	return valueOf(f.nodes[codexTable], name) // of an inline table
}

// valuesOf returns what is set of a server; "null" for nothing.
func (f *tomlFile) valuesOf(server string) []byte {
	return jsonOf(f.serverOf(server))
}

// unwrapped returns the changes that remove what [Edit.wrapTOML] has added, or nil if that can't
// be determined.
func (f *tomlFile) unwrapped(en *entry) []hunk {
	args := en.args()
	at := afterName(args)
	command, list := en.toml.at("command"), en.toml.at("args")
	switch {
	case command == nil || list == nil || at >= len(args) || slices.Contains(list.items, -1):
		return nil
	case args[at] == "--" && at+1 < len(args):
		hunks := []hunk{{command.value, command.to, tomlText(args[at+1])}}
		if at+2 == len(args) {
			return append(hunks, f.without([]*setting{list})...)
		}
		return append(hunks, hunk{from: list.items[0], to: list.items[at+2]})
	case args[at] != "--" && at == len(args)-1:
		return f.unwrappedURL(en.toml, command, list, args[at])
	}
	return nil
}

// unwrappedURL puts a URL in the place of mcpbridge. Of the environment, which Codex takes for
// commands alone, the headers stay.
func (f *tomlFile) unwrappedURL(s *tomlServer, command, list *setting, target string) []hunk {
	var headers []string
	for _, v := range pairs(valueOf(s.node, "env")) {
		rest, ours := strings.CutPrefix(v.name(), "MCPBRIDGE_SERVERS__")
		_, key, _ := strings.Cut(rest, "__")
		header, isHeader := strings.CutPrefix(key, "HEADERS__")
		switch {
		case ours && isHeader:
			headers = append(headers, tomlKey(headerName(header))+" = "+tomlText(v.value.Value))
		case ours && key == "URL":
			target = v.value.Value
		}
	}
	hunks := []hunk{{command.keys[len(command.keys)-1], command.to, "url = " + tomlText(target)}}
	if len(headers) > 0 {
		hunks = append(hunks, f.after(command, "http_headers = { "+strings.Join(headers, ", ")+" }"))
	}
	gone := append([]*setting{list}, s.below("env")...)
	return append(hunks, f.without(append(gone, s.below("env_vars")...))...)
}

// tomlText writes a text, as JSON has it but for the one character that TOML refuses and JSON does not.
func tomlText(s string) string { return strings.ReplaceAll(quote(s), "\x7f", `\u007F`) }

// tomlList writes a list of texts.
func tomlList(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = tomlText(w)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// tomlKey writes a key, in quotes if it needs them.
func tomlKey(key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return tomlText(key)
	}
	return key
}

// tomlValue writes a value on one line.
func tomlValue(n *yaml.Node) string {
	var parts []string
	switch {
	case n.Kind == yaml.MappingNode:
		for _, kv := range pairs(n) {
			parts = append(parts, tomlKey(kv.name())+" = "+tomlValue(kv.value))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			parts = append(parts, tomlValue(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case n.Tag == "!!str":
		return tomlText(n.Value)
	}
	return n.Value
}

// isTexts reports whether a value is a list of texts; none is one, too.
func isTexts(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.SequenceNode && !slices.ContainsFunc(n.Content, func(item *yaml.Node) bool { return item.Tag != "!!str" })
}

// textsOf returns the texts of a list, and the names of its tables.
func textsOf(n *yaml.Node) (words []string) {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	for _, item := range n.Content {
		if name := valueOf(item, "name"); name != nil {
			item = name
		}
		if item.Kind == yaml.ScalarNode {
			words = append(words, item.Value)
		}
	}
	return words
}
