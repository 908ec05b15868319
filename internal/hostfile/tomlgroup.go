package hostfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A block is lines of a file that are one server's, with those of the comments right above and the
// empty ones below.
type block struct {
	first       *setting
	from, begin int // with the comments, and without
	end, stop   int // without the empty lines, and with them
}

// blocks returns the lines of a server. Between them are others' lines.
func (s *tomlServer) blocks() (all []*block) {
	f := s.file
	last := -2
	floor := 0 // where what is before ends
	for i, set := range f.settings {
		begin, _, next := f.lineOf(set.from, set.to)
		if slices.Contains(s.whole, set) {
			if last != i-1 {
				all = append(all, &block{first: set, from: f.comments(floor, begin), begin: begin})
			}
			b := all[len(all)-1]
			b.end, b.stop, last = next, f.empty(next), i
		}
		floor = next
	}
	return all
}

// comments returns where the comments right above a line begin.
func (f *tomlFile) comments(floor, line int) int {
	for line > floor {
		up := bytes.LastIndexByte(f.data[:line-1], '\n') + 1
		if up < floor || !bytes.HasPrefix(bytes.TrimLeft(f.data[up:line], " \t"), []byte("#")) {
			break
		}
		line = up
	}
	return line
}

// empty returns where the empty lines from one on end.
func (f *tomlFile) empty(line int) int {
	for {
		n := bytes.IndexByte(f.data[line:], '\n')
		if n < 0 || len(bytes.TrimSpace(f.data[line:line+n])) > 0 {
			return line
		}
		line += n + 1
	}
}

// hunksTOML returns the changes that make one entry of servers, in their order.
func (g *Group) hunksTOML(data []byte, move []string) ([]hunk, error) {
	f, err := parseTOML(data)
	if err != nil {
		return nil, err
	}
	entries := tomlEntries(f)
	name := cmp.Or(g.Entry, unused(entries))
	var moved []*entry
	for _, en := range entries {
		if slices.Contains(move, en.name) {
			moved = append(moved, en)
		}
	}
	if len(moved) == 0 {
		return nil, errors.New("no server of the file can be moved")
	}
	var hunks []hunk
	for i, en := range moved {
		for k, b := range en.toml.blocks() {
			if i < len(moved)-1 || k > 0 {
				hunks = append(hunks, hunk{from: b.from, to: b.stop})
				continue
			}
			text := g.textTOML(f, b, name, moved)
			if b.end > 0 && f.data[b.end-1] == '\n' {
				text += f.eol()
			}
			hunks = append(hunks, hunk{b.begin, b.end, text})
		}
	}
	return inOrder(hunks), nil
}

// textTOML returns the one entry, written as the server was in whose place it is.
func (g *Group) textTOML(f *tomlFile, like *block, name string, moved []*entry) string {
	settings := []string{"command = " + tomlText(g.Binary), "args = " + tomlList([]string{"wrap", "--all", g.File})}
	if vars := variablesTOML(moved); len(vars) > 0 {
		settings = append(settings, "env_vars = "+tomlList(vars))
	}
	// Codex waits this long if it is told nothing.
	for _, wait := range []struct{ key, otherwise string }{{"startup_timeout_sec", "10"}, {"tool_timeout_sec", "60"}} {
		longest := wait.otherwise
		for _, en := range moved {
			longest = longer(longest, en.literal(wait.key))
		}
		if longest != wait.otherwise {
			settings = append(settings, wait.key+" = "+longest)
		}
	}
	indent := string(f.data[like.begin:like.first.from])
	if like.first.header {
		settings = append([]string{"[" + codexTable + "." + tomlKey(name) + "]"}, settings...)
		return indent + strings.Join(settings, f.eol()+indent)
	}
	key := like.first.keys[len(like.first.keys)-len(like.first.path)+1]
	return indent + string(f.data[like.first.from:key]) + tomlKey(name) + " = { " + strings.Join(settings, ", ") + " }"
}

// variablesTOML returns the environment variables that Codex passes on for servers.
func variablesTOML(servers []*entry) (vars []string) {
	for _, en := range servers {
		vars = append(vars, textsOf(valueOf(en.toml.node, "env_vars"))...)
		if v := valueOf(en.toml.node, "bearer_token_env_var"); v != nil {
			vars = append(vars, v.Value)
		}
		for _, kv := range pairs(valueOf(en.toml.node, "env_http_headers")) {
			vars = append(vars, kv.value.Value)
		}
	}
	slices.Sort(vars)
	return slices.Compact(vars)
}

// whyStayTOML returns why a server of Codex can't be moved, or "".
func whyStayTOML(en *entry) string {
	for _, p := range en.toml.whole {
		if p.within != nil {
			return "is in one inline table with others, " + codexTable + " = { … }; write it as [" + codexTable + "." + tomlKey(en.name) + "] to move it"
		}
	}
	if en.object != nil && member(en.object, "experimental_environment") != nil {
		return "runs where Codex says (experimental_environment), which mcpbridge can't do"
	}
	return ""
}

// restoreTOML is [Group.Restore] for Codex.
func (g *Group) restoreTOML(data, before []byte, moved []string) ([]byte, []Change, error) {
	f, err := parseTOML(data)
	if err != nil {
		return nil, nil, err
	}
	was, err := parseTOML(before)
	if err != nil {
		return nil, nil, err
	}
	back, changes, err := was.missingIn(f, moved)
	if err != nil {
		return nil, nil, err
	}
	one := g.entryOf(data)
	switch {
	case one == nil && len(back) > 0:
		return nil, nil, ErrNoEntry
	case one == nil:
		return data, nil, nil
	}
	changes = append(changes, Change{one.name, true, "", "removed"})
	var gone []string
	for _, s := range back {
		gone = append(gone, s.name)
	}
	hunks, _ := g.hunksTOML(before, gone) // nothing, if none is gone
	for _, second := range []bool{false, true} {
		out := apply(data, all(takeBack(before, hunks, data, second)))
		if g.holdsTOML(out, data, was, moved, one.name) {
			return out, changes, nil
		}
	}
	out := one.toml.replacedBy(back)
	if !g.holdsTOML(out, data, was, moved, one.name) {
		return nil, nil, fmt.Errorf("the servers can't be put back in the place of %s, because of what was written around it since; move [%s.%s] to the end of the file", one.name, codexTable, tomlKey(one.name))
	}
	return out, changes, nil
}

// all returns the changes that are known.
func all(known []*hunk) (hunks []hunk) {
	for _, h := range known {
		if h != nil {
			hunks = append(hunks, *h)
		}
	}
	return inOrder(hunks)
}

// missingIn returns which servers have to be put back.
func (f *tomlFile) missingIn(now *tomlFile, moved []string) (back []*tomlServer, changes []Change, err error) {
	for _, s := range f.servers() {
		if !slices.Contains(moved, s.name) {
			continue
		}
		switch again := now.valuesOf(s.name); {
		case string(again) == "null":
			back = append(back, s)
			changes = append(changes, Change{s.name, true, "as it was", "put back"})
		case !bytes.Equal(again, jsonOf(s.node)):
			return nil, nil, fmt.Errorf("%s was moved, and is in the file again, but not as it was: rename or remove that one, so that none of them is lost", s.name)
		default:
			changes = append(changes, Change{Server: s.name, Why: "is in the file again"})
		}
	}
	return back, changes, nil
}

// replacedBy returns the file with servers of another one in the place of this one.
func (s *tomlServer) replacedBy(back []*tomlServer) []byte {
	var hunks []hunk
	for i, b := range s.blocks() {
		h := hunk{from: b.begin, to: b.end}
		for _, old := range back {
			if i == 0 {
				h.text += old.lines(b.first.header, s.file.eol())
			}
		}
		hunks = append(hunks, h)
	}
	return apply(s.file.data, hunks)
}

// lines returns the lines of a server; written anew if they can't stand where there are headers, or
// where there are none.
func (s *tomlServer) lines(headers bool, eol string) (text string) {
	if !headers {
		return s.key() + tomlValue(s.node) + eol
	}
	for _, b := range s.blocks() {
		if !b.first.header {
			text = "[" + codexTable + "." + tomlKey(s.name) + "]" + eol
			for _, kv := range pairs(s.node) {
				text += tomlKey(kv.name()) + " = " + tomlValue(kv.value) + eol
			}
			return text + eol
		}
		text += string(s.file.data[b.from:b.stop])
		if !strings.HasSuffix(text, "\n") {
			text += eol
		}
	}
	return text
}

// key returns the beginning of a server as one setting.
func (s *tomlServer) key() string {
	if first := s.whole[0]; !first.header && len(first.keys) < len(first.path) {
		return tomlKey(s.name) + " = " // in [mcp_servers]
	}
	return codexTable + "." + tomlKey(s.name) + " = "
}

// holdsTOML reports whether a file has the moved servers as they were, all others as they are in
// data, and no entry.
func (g *Group) holdsTOML(out, data []byte, was *tomlFile, moved []string, entry string) bool {
	f, err := parseTOML(out)
	now, err2 := parseTOML(data)
	if err != nil || err2 != nil || g.Has(out) {
		return false
	}
	for _, name := range moved {
		if !bytes.Equal(f.valuesOf(name), was.valuesOf(name)) {
			return false
		}
	}
	for _, s := range now.servers() {
		if s.name != entry && !slices.Contains(moved, s.name) && !bytes.Equal(f.valuesOf(s.name), jsonOf(s.node)) {
			return false
		}
	}
	return len(f.root.Content) == len(now.root.Content)
}

// carryTOML returns installed with what the one entry of another file has besides.
func carryTOML(installed []byte, to, from *tomlServer) []byte {
	if !to.whole[0].header || !from.whole[0].header {
		return installed
	}
	ours := []string{"command", "args", "env", "env_vars", "startup_timeout_sec", "tool_timeout_sec"}
	text := ""
	for _, p := range from.whole {
		if len(p.path) < 3 || slices.Contains(ours, p.path[2]) {
			continue
		}
		begin, _, next := from.file.lineOf(p.from, p.to)
		text += strings.TrimRight(string(from.file.data[begin:next]), "\r\n") + to.file.eol()
	}
	blocks := to.blocks()
	if len(blocks) != 1 || text == "" {
		return installed
	}
	end := blocks[0].end
	if !bytes.HasSuffix(installed[:end], []byte("\n")) {
		text = to.file.eol() + text
	}
	return slices.Concat(installed[:end], []byte(text), installed[end:])
}
