package hostfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
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

// Stay returns the servers of a file that can't be moved, with the reason, and the others.
func (g *Group) Stay(data []byte) (stay []Change, move []string, err error) {
	v, err := parse(data)
	if err != nil {
		return nil, nil, err
	}
	t := g.tableOf(data, &v)
	if err := g.missing(g.entries(data, &v)); err != nil {
		return nil, nil, err
	}
	out := g.keptOut(&v)
	for _, en := range g.entries(data, &v) {
		if len(g.Only) > 0 && !slices.Contains(g.Only, en.name) {
			continue
		}
		if why := cmp.Or(t.whyElsewhere(en), g.whyStay(en, out), t.whyTwice(en)); why != "" {
			stay = append(stay, Change{Server: en.name, Why: why})
			continue
		}
		move = append(move, en.name)
	}
	return stay, move, nil
}

// whyStay returns why a server can't be moved, or "".
func (g *Group) whyStay(en *entry, out func(string) bool) string {
	text := string(en.text)
	switch {
	case g.isEntry(en):
		return "runs the servers that were moved"
	case en.object == nil:
		return "is not an object"
	case en.isWrapped(g.Binary):
		return "runs under mcpbridge by itself already; to move it, too, uninstall that first"
	case en.isTrue("disabled"), en.isFalse("enabled"), out(en.name):
		return "is disabled, and stays so that it can be enabled in " + g.Host.Title
	case strings.Contains(text, "${input:"):
		return g.Host.Title + " asks the user for what it needs (${input:…})"
	case en.isTrue("sandboxEnabled"):
		return "runs in a sandbox of " + g.Host.Title + ", which mcpbridge has not"
	case aboutFolder.MatchString(text) && g.inUsersFile():
		return "is told which folder " + g.Host.Title + " works in, which the file does not say"
	case !g.Host.expands() && strings.Contains(text, "${"):
		return "has ${…}, which " + g.Host.Title + " passes on as it is, and mcpbridge replaces"
	}
	return g.reasonToSkip(en)
}

// inUsersFile reports whether the host's file is that of a user, and not that of a project.
func (g *Group) inUsersFile() bool {
	folder := workspace(under(g.Here, g.Path))
	return folder == "" || folder == g.Home
}

func (en *entry) isTrue(name string) bool  { return en.literal(name) == "true" }
func (en *entry) isFalse(name string) bool { return en.literal(name) == "false" }

// literal returns the text of a member that is no list and no object, or "".
func (en *entry) literal(name string) string {
	if m := member(en.object, name); m != nil {
		l, _ := m.Value.Value.(hujson.Literal)
		return string(l)
	}
	return ""
}

// keptOut returns whether a setting of the host keeps it from starting a server.
func (g *Group) keptOut(root *hujson.Value) func(name string) bool {
	if g.Host != gemini {
		return func(string) bool { return false }
	}
	allowed, excluded := wordsOf(mcpList(root, "allowed")), wordsOf(mcpList(root, "excluded"))
	return func(name string) bool {
		return slices.Contains(excluded, name) || allowed != nil && !slices.Contains(allowed, name)
	}
}

// mcpList returns a list of Gemini CLI's settings for all servers, or nil.
func mcpList(root *hujson.Value, name string) *hujson.Array {
	for _, m := range members(root) {
		if nameOf(m) != "mcp" {
			continue
		}
		for _, m := range members(&m.Value) {
			if list, ok := m.Value.Value.(*hujson.Array); ok && nameOf(m) == name {
				return list
			}
		}
	}
	return nil
}

func wordsOf(list *hujson.Array) (words []string) {
	for i := 0; list != nil && i < len(list.Elements); i++ {
		words = append(words, textOf(&list.Elements[i]))
	}
	return words
}

// Install returns data with one entry in the place of the servers to move, of which there has to
// be one.
func (g *Group) Install(data []byte, move []string) ([]byte, error) {
	hunks, err := g.hunks(data, move)
	if err != nil {
		return nil, err
	}
	var out []byte
	at := 0
	for _, h := range hunks {
		out = append(append(out, data[at:h.from]...), h.text...)
		at = h.to
	}
	return append(out, data[at:]...), nil
}

// EntryName returns the name of the one entry of a file, or what it would be.
func (g *Group) EntryName(data []byte) string {
	v, err := parse(data)
	if err != nil {
		return GroupName
	}
	t := g.tableOf(data, &v)
	for _, p := range t.list {
		if g.isEntry(p.entry) {
			return p.name
		}
	}
	return t.unused()
}

// Carry returns installed, a file with the one entry, with what the entry of another one has
// besides: the host writes what its user allows there.
func (g *Group) Carry(installed, other []byte) []byte {
	from, to := g.entryOf(other), g.entryOf(installed)
	if from == nil || to == nil {
		return installed
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
	v, err := parse(data)
	if err != nil {
		return nil
	}
	entries := g.entries(data, &v)
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
	v, err := parse(data)
	if err != nil {
		return nil, err
	}
	t := g.tableOf(data, &v)
	name := cmp.Or(g.Entry, t.unused())
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

// Restore returns data, which has the one entry, with the servers in its place that were moved, as
// they are in before. What else the file has stays. A server that is in the file again stays, too,
// if it is as before. [ErrNoEntry] says that nothing tells where the servers were.
func (g *Group) Restore(data, before []byte, moved []string) ([]byte, []Change, error) {
	v, err := parse(data)
	if err != nil {
		return nil, nil, err
	}
	w, err := parse(before)
	if err != nil {
		return nil, nil, err
	}
	now, was := g.tableOf(data, &v), g.tableOf(before, &w)
	back, changes, err := was.missingIn(now, moved)
	if err != nil {
		return nil, nil, err
	}
	one := slices.IndexFunc(now.list, func(p *placed) bool { return g.isEntry(p.entry) })
	switch {
	case one < 0 && len(back) > 0:
		return nil, nil, ErrNoEntry
	case one < 0:
		return data, nil, nil
	}
	entry := now.list[one].name
	changes = append(changes, Change{entry, true, "", "removed"})
	if len(back) == len(moved) {
		if out := g.reversed(data, before, moved); out != nil {
			return out, changes, nil
		}
	}
	out := now.without(one)
	if len(back) > 0 {
		out = was.putBack(now, one, back)
	}
	return disallow(out, before, entry), changes, nil
}

// reversed undoes each change where it was made, if that can be told: because what the user has
// changed since is at one place between. Otherwise it returns nil.
func (g *Group) reversed(data, before []byte, moved []string) []byte {
	hunks, err := g.hunks(before, moved)
	if err != nil {
		return nil
	}
	installed, _ := g.Install(before, moved) // has the same error
	head := same(installed, data)
	tail := len(installed) - sameEnd(installed, data)
	var out []byte
	at, shift := 0, 0
	for _, h := range hunks {
		begin := h.from + shift
		shift += len(h.text) - (h.to - h.from)
		switch end := begin + len(h.text); {
		case end <= head:
		case begin >= tail:
			begin += len(data) - len(installed)
		default:
			return nil
		}
		if begin < at {
			return nil
		}
		out = append(append(out, data[at:begin]...), before[h.from:h.to]...)
		at = begin + len(h.text)
	}
	if out = append(out, data[at:]...); !g.holds(out, before, moved) {
		return nil
	}
	return out
}

// holds reports whether a file has the moved servers as they are in before, and no entry.
func (g *Group) holds(data, before []byte, moved []string) bool {
	v, err := parse(data)
	w, was := parse(before)
	if err != nil || was != nil || g.Has(data) {
		return false
	}
	back, _, err := g.tableOf(before, &w).missingIn(g.tableOf(data, &v), moved)
	return err == nil && len(back) == 0
}

// same returns how many bytes are the same at the beginning.
func same(a, b []byte) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// sameEnd returns how many bytes are the same at the end.
func sameEnd(a, b []byte) (n int) {
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// isEntry reports whether a server of the host's file is the one entry.
func (g *Group) isEntry(en *entry) bool {
	args := en.args()
	return len(args) == 3 && args[0] == "wrap" && args[1] == "--all" && args[2] == g.File
}

// Files returns the files that servers of a host's file have wrap --all serve.
func (g *Group) Files(data []byte) (files []string) {
	v, err := parse(data)
	if err != nil {
		return nil
	}
	for _, en := range g.entries(data, &v) {
		if args := en.args(); len(args) == 3 && args[0] == "wrap" && args[1] == "--all" {
			files = append(files, args[2])
		}
	}
	return files
}

// Has reports whether a file has the one entry.
func (g *Group) Has(data []byte) bool { return g.entryOf(data) != nil }

// A table is the servers of a host's file that may be moved.
type table struct {
	data   []byte
	start  int // of what is in it
	object *hujson.Object
	list   []*placed
}

// A placed is a server with its name.
type placed struct {
	*entry
	from  int // where its name begins
	extra int // where what stands before its name begins
}

// tableOf returns the first table of servers at the top of a file.
func (g *Group) tableOf(data []byte, root *hujson.Value) *table {
	for _, m := range members(root) {
		o, ok := m.Value.Value.(*hujson.Object)
		if name := nameOf(m); ok && (name == "servers" || name == "mcpServers") {
			t := &table{data: data, start: m.Value.StartOffset + 1, object: o}
			t.place(tableEntries(data, name, &m.Value))
			return t
		}
	}
	return &table{data: data}
}

func (t *table) place(entries []*entry) {
	extra := t.start
	for i, en := range entries {
		m := &t.object.Members[i]
		t.list = append(t.list, &placed{en, m.Name.StartOffset, extra})
		extra = en.end + len(m.Value.AfterExtra) + 1
	}
}

// begin returns where the lines of a server begin: those before it on the line of the one before
// are that one's.
func (t *table) begin(i int) int {
	p := t.list[i]
	extra := t.data[p.extra:p.from]
	for at := 0; at < len(extra); at++ {
		switch {
		case bytes.HasPrefix(extra[at:], []byte("/*")):
			at += 3 + bytes.Index(extra[at+2:], []byte("*/"))
		case bytes.HasPrefix(extra[at:], []byte("//")):
			at += bytes.IndexByte(extra[at:], '\n') - 1
		case extra[at] == '\n':
			return p.extra + at + 1
		}
	}
	return p.extra
}

func (t *table) named(name string) *placed {
	if at := slices.IndexFunc(t.list, func(p *placed) bool { return p.name == name }); at >= 0 {
		return t.list[at]
	}
	return nil
}

// whyElsewhere returns why a server that is not in the table can't be moved.
func (t *table) whyElsewhere(en *entry) string {
	if p := t.named(en.name); p != nil && p.path == en.path {
		return ""
	}
	folder, _, _ := strings.Cut(en.path, "\x00")
	return "is for " + folder + " alone"
}

// whyTwice returns why one of several servers of a name can't be moved.
func (t *table) whyTwice(en *entry) string {
	count := 0
	for _, p := range t.list {
		if p.name == en.name {
			count++
		}
	}
	if count > 1 {
		return "has the name of another server of the file"
	}
	return ""
}

// unused returns a name for the one entry that no server has.
func (t *table) unused() string {
	name := GroupName
	for i := 2; t.named(name) != nil; i++ {
		name = fmt.Sprintf("%s-%d", GroupName, i)
	}
	return name
}

// without returns the file without one of several servers.
func (t *table) without(i int) []byte {
	switch {
	case i+1 < len(t.list):
		return slices.Concat(t.data[:t.begin(i)], t.data[t.begin(i+1):])
	case i > 0:
		return slices.Concat(t.data[:t.list[i-1].end], t.data[t.list[i].end:])
	}
	return t.data
}

// missingIn returns which servers have to be put back, by their places before.
func (t *table) missingIn(now *table, moved []string) (back []int, changes []Change, err error) {
	for i, p := range t.list {
		if !slices.Contains(moved, p.name) {
			continue
		}
		again := now.named(p.name)
		switch {
		case again == nil:
			back = append(back, i)
			changes = append(changes, Change{p.name, true, "as it was", "put back"})
		case !bytes.Equal(again.text, p.text):
			return nil, nil, fmt.Errorf("%s was moved, and is in the file again, but not as it was: rename or remove that one, so that none of them is lost", p.name)
		default:
			changes = append(changes, Change{Server: p.name, Why: "is in the file again"})
		}
	}
	return back, changes, nil
}

// putBack returns the file now with servers of t: the last of them in the place of the one entry,
// each other before what followed it.
func (t *table) putBack(now *table, one int, back []int) []byte {
	before := make(map[int][]byte) // by the place of what follows
	last := back[len(back)-1]
	for _, i := range back[:len(back)-1] {
		next := t.next(now, i, last)
		if next < 0 {
			next = one
		}
		before[next] = append(before[next], t.data[t.begin(i):t.begin(i+1)]...)
	}
	var out []byte
	at := 0
	for i, p := range now.list {
		begin := now.begin(i)
		out = append(append(out, now.data[at:begin]...), before[i]...)
		if at = begin; i == one {
			out = append(append(out, now.data[at:p.from]...), t.data[t.list[last].from:t.list[last].end]...)
			at = p.end
		}
	}
	return append(out, now.data[at:]...)
}

// next returns where the first server is now that followed the i-th, up to the last; negative for
// none.
func (t *table) next(now *table, i, last int) int {
	for _, p := range t.list[i+1 : last] {
		if at := slices.IndexFunc(now.list, func(q *placed) bool { return q.name == p.name }); at >= 0 {
			return at
		}
	}
	return -1
}

// disallow takes the one entry out of the list of servers that Gemini CLI may start, unless it was
// there before.
func disallow(data, before []byte, name string) []byte {
	v, err := parse(data)
	w, was := parse(before)
	if err != nil || was != nil || slices.Contains(wordsOf(mcpList(&w, "allowed")), name) {
		return data
	}
	list := mcpList(&v, "allowed")
	at := slices.Index(wordsOf(list), name)
	if at < 1 {
		return data
	}
	return slices.Concat(data[:list.Elements[at-1].EndOffset], data[list.Elements[at].EndOffset:])
}
