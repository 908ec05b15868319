package hostfile

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tailscale/hujson"
)

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
		if name := nameOf(m); ok && isTable(name) {
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

// unused returns a name for the one entry that no server has.
func unused(servers []*entry) string {
	name := GroupName
	taken := func(en *entry) bool { return en.name == name }
	for i := 2; slices.ContainsFunc(servers, taken); i++ {
		name = fmt.Sprintf("%s-%d", GroupName, i)
	}
	return name
}
