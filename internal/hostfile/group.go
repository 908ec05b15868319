package hostfile

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// GroupName is the name of the one entry of a [Group], unless a server has it.
const GroupName = "mcpbridge"

// A Group makes one entry of servers of a host's file, which runs mcpbridge wrap --all with the
// file that they are moved to, or puts them back. It changes no bytes of other servers, and of
// settings none but a list of servers that the host may start.
type Group struct {
	*Edit // Only names the servers to move; empty means all suitable ones
	// File is what the servers are moved to.
	File string
	// Entry is the name of the one entry; empty for [GroupName].
	Entry string
	// Path is that of the host's file.
	Path string
	Machine
}

// ErrNoEntry says that the one entry is not in the host's file, and that not all servers are back.
var ErrNoEntry = errors.New("the entry that runs mcpbridge with the servers is gone")

// Install returns data with one entry in the place of the servers to move, of which there has to
// be one.
func (g *Group) Install(data []byte, move []string) ([]byte, error) {
	hunks, err := g.hunks(data, move)
	if err != nil {
		return nil, err
	}
	return apply(data, hunks), nil
}

// EntryName returns the name of the one entry of a file, or what it would be.
func (g *Group) EntryName(data []byte) string {
	list, _ := g.list(data) // nothing is in what can't be read
	for _, en := range list {
		if g.isEntry(en) {
			return en.name
		}
	}
	return unused(list)
}

// Carry returns installed, a file with the one entry, with what the entry of another one has
// besides: the host writes what its user allows there.
func (g *Group) Carry(installed, other []byte) []byte {
	from, to := g.entryOf(other), g.entryOf(installed)
	if from == nil || to == nil {
		return installed
	}
	if g.Host == codex {
		return carryTOML(installed, to.toml, from.toml)
	}
	v, o := to.clone()
	for _, m := range membersOf(from.object) {
		had := member(o, nameOf(m))
		if had == nil {
			add(o, nameOf(m), m.Value.Value)
			continue
		}
		vars, ok := had.Value.Value.(*hujson.Object)
		for _, m := range members(&m.Value) {
			if ok && member(vars, nameOf(m)) == nil {
				add(vars, nameOf(m), m.Value.Value)
			}
		}
	}
	return slices.Concat(installed[:to.start], v.Pack(), installed[to.end:])
}

func (g *Group) entryOf(data []byte) *entry {
	entries, _ := g.list(data) // nothing is in what can't be read
	if at := slices.IndexFunc(entries, g.isEntry); at >= 0 {
		return entries[at]
	}
	return nil
}

// A hunk is a part of a file, and what is written in its place.
type hunk struct {
	from, to int
	text     string
}

// hunks returns the changes that make one entry of servers, in their order.
func (g *Group) hunks(data []byte, move []string) ([]hunk, error) {
	if g.Host == codex {
		return g.hunksTOML(data, move)
	}
	v, err := parse(data)
	if err != nil {
		return nil, err
	}
	t := g.tableOf(data, &v)
	name := cmp.Or(g.Entry, unused(g.entries(data, &v)))
	last := -1
	for i := range t.list {
		if slices.Contains(move, t.list[i].name) {
			last = i
		}
	}
	if last < 0 {
		return nil, errors.New("no server of the file can be moved")
	}
	var hunks []hunk
	for i := range t.list[:last] {
		if slices.Contains(move, t.list[i].name) {
			hunks = append(hunks, hunk{from: t.begin(i), to: t.begin(i + 1)})
		}
	}
	m := t.list[last]
	hunks = append(hunks, hunk{m.from, m.end, g.text(t, m, name, move)})
	if list := mcpList(&v, "allowed"); g.Host == gemini && list != nil && len(list.Elements) > 0 && !slices.Contains(wordsOf(list), name) {
		at := list.Elements[len(list.Elements)-1].EndOffset
		hunks = append(hunks, hunk{at, at, ", " + quote(name)})
	}
	slices.SortFunc(hunks, func(a, b hunk) int { return a.from - b.from })
	return hunks, nil
}

// text returns the member that is the one entry, laid out as the one in whose place it is.
func (g *Group) text(t *table, like *placed, name string, move []string) string {
	parts := []string{
		`"command": ` + quote(g.Binary),
		`"args": ["wrap", "--all", ` + quote(g.File) + `]`,
	}
	var vars []string
	longest := ""
	for _, en := range t.list {
		if !slices.Contains(move, en.name) {
			continue
		}
		for _, v := range g.Host.variablesIn(string(en.text)) {
			if !slices.Contains(vars, v) {
				vars = append(vars, v)
			}
		}
		longest = longer(longest, en.literal("timeout"))
	}
	if len(vars) > 0 {
		slices.Sort(vars)
		for i, v := range vars {
			vars[i] = quote(v) + ": " + quote(g.Host.reference(v))
		}
		parts = append(parts, `"env": {`+strings.Join(vars, ", ")+"}")
	}
	if longest != "" {
		parts = append(parts, `"timeout": `+longest)
	}
	inner, outer, separator := "", "", ", "
	if o := like.object; len(o.Members) > 0 && bytes.ContainsRune(o.Members[0].Name.BeforeExtra, '\n') {
		inner, outer = string(space(o.Members[0].Name.BeforeExtra)), string(space(o.AfterExtra))
		separator = "," + inner
	}
	return quote(name) + ": {" + inner + strings.Join(parts, separator) + outer + "}"
}

// longer returns the greater of two numbers, which may be none.
func longer(a, b string) string {
	x, _ := strconv.ParseFloat(a, 64) // 0 for what is no number
	if y, err := strconv.ParseFloat(b, 64); err == nil && y > x {
		return b
	}
	return a
}

func quote(s string) string { return string(hujson.String(s)) }

// isEntry reports whether a server of the host's file is the one entry.
func (g *Group) isEntry(en *entry) bool {
	args := en.args()
	return len(args) == 3 && args[0] == "wrap" && args[1] == "--all" && args[2] == g.File
}

// Files returns the files that servers of a host's file have wrap --all serve.
func (g *Group) Files(data []byte) (files []string) {
	entries, _ := g.list(data) // nothing is in what can't be read
	for _, en := range entries {
		if args := en.args(); len(args) == 3 && args[0] == "wrap" && args[1] == "--all" {
			files = append(files, args[2])
		}
	}
	return files
}

// Has reports whether a file has the one entry.
func (g *Group) Has(data []byte) bool { return g.entryOf(data) != nil }
