package hostfile

import (
	"bytes"
	"fmt"
	"slices"
)

// Restore returns data, which has the one entry, with the servers in its place that were moved, as
// they are in before. What else the file has stays. A server that is in the file again stays, too,
// if it is as before. [ErrNoEntry] says that nothing tells where the servers were.
func (g *Group) Restore(data, before []byte, moved []string) ([]byte, []Change, error) {
	if g.Host == codex {
		return g.restoreTOML(data, before, moved)
	}
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
