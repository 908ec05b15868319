package hostfile

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/tailscale/hujson"
)

// An Edit puts mcpbridge in front of servers of a host's file, or removes it. It changes
// no bytes outside of these servers.
type Edit struct {
	Host *Host
	// Binary is the command that is written into the file.
	Binary string
	// Only names the servers to change; empty means all suitable ones.
	Only []string
}

// A Change is the result of an Edit for one server.
type Change struct {
	Server  string
	Changed bool
	Why     string // why it was not changed, or a remark on the change
	Done    string // what was done with it; "changed" if empty
}

// Install returns data with its servers under mcpbridge wrap. The error is a
// [*SyntaxError], or names an unknown server.
func (e *Edit) Install(data []byte) ([]byte, []Change, error) {
	if e.Host == codex {
		return e.installTOML(data)
	}
	return e.each(data, func(en *entry) ([]byte, Change) {
		if why := cmp.Or(e.reasonToSkip(en), reasonNotToPass(en)); why != "" {
			return nil, Change{Server: en.name, Why: why}
		}
		text, why := e.wrapped(en)
		return text, Change{Server: en.name, Changed: text != nil, Why: why}
	})
}

// Uninstall returns data with its servers as they were. before is the file before
// Install, or nil. A server that was not changed since Install gets its bytes from
// before. From others Uninstall removes what Install has added.
func (e *Edit) Uninstall(data, before []byte) ([]byte, []Change, error) {
	if e.Host == codex {
		return e.uninstallTOML(data, before)
	}
	old := make(map[string]*entry)
	if before != nil {
		v, err := parse(before)
		if err != nil {
			return nil, nil, err
		}
		for _, en := range e.entries(before, &v) {
			old[en.path] = en
		}
	}
	return e.each(data, func(en *entry) ([]byte, Change) {
		if !en.isWrapped(e.Binary) {
			return nil, Change{Server: en.name, Why: "does not run under mcpbridge"}
		}
		was := old[en.path]
		if was != nil {
			as := &Edit{Host: e.Host, Binary: en.string("command")}
			if text, _ := as.wrapped(was); bytes.Equal(text, en.text) {
				return was.text, Change{Server: en.name, Changed: true, Why: "as it was"}
			}
		}
		text := e.unwrapped(en, was)
		if text == nil {
			return nil, Change{Server: en.name, Why: changedTooMuch}
		}
		return text, Change{Server: en.name, Changed: true, Why: changedSince}
	})
}

const (
	changedSince   = "changed since: what you changed is kept"
	changedTooMuch = "was changed so much that nothing tells what ran before; edit it by hand"
)

// Wrapped reports whether a server of the file runs under mcpbridge.
func (e *Edit) Wrapped(data []byte) bool {
	entries, err := e.list(data)
	return err == nil && slices.ContainsFunc(entries, func(en *entry) bool { return en.isWrapped(e.Binary) })
}

// MayHaveServers reports whether a file of the host has servers, or can't be read, which its user has
// to know.
func (h *Host) MayHaveServers(data []byte) bool {
	servers, err := (&Edit{Host: h}).list(data)
	return err != nil || len(servers) > 0
}

// list returns the servers of a file in their order.
func (e *Edit) list(data []byte) ([]*entry, error) {
	if e.Host == codex {
		f, err := parseTOML(data)
		if err != nil {
			return nil, err
		}
		return tomlEntries(f), nil
	}
	v, err := parse(data)
	if err != nil {
		return nil, err
	}
	return e.entries(data, &v), nil
}

// each calls change for the servers to edit, and replaces each one by the result, unless
// that is nil.
func (e *Edit) each(data []byte, change func(*entry) ([]byte, Change)) ([]byte, []Change, error) {
	v, err := parse(data)
	if err != nil {
		return nil, nil, err
	}
	chosen, err := e.chosen(e.entries(data, &v))
	if err != nil {
		return nil, nil, err
	}
	var out []byte
	var outcomes []Change
	at := 0
	for _, en := range chosen {
		text, outcome := change(en)
		outcomes = append(outcomes, outcome)
		if text != nil {
			out = append(append(out, data[at:en.start]...), text...)
			at = en.end
		}
	}
	return append(out, data[at:]...), outcomes, nil
}

// chosen returns the servers to edit. It is an error if one of Only does not exist.
func (e *Edit) chosen(entries []*entry) (chosen []*entry, err error) {
	var names []string
	for _, en := range entries {
		names = append(names, en.name)
		if len(e.Only) == 0 || slices.Contains(e.Only, en.name) {
			chosen = append(chosen, en)
		}
	}
	for _, name := range e.Only {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("there is no server %q; there are %s", name, some(names))
		}
	}
	return chosen, nil
}

// An entry is one server of a host's file.
type entry struct {
	path, name string
	text       []byte // the bytes of the file from start to end
	start, end int
	object     *hujson.Object // nil if it is not an object; of TOML a copy
	toml       *tomlServer    // nil for JSON
}

// entries returns the servers in the order of the file.
func (e *Edit) entries(data []byte, root *hujson.Value) []*entry {
	var out []*entry
	for _, m := range members(root) {
		switch name := nameOf(m); {
		case isTable(name):
			out = append(out, tableEntries(data, name, &m.Value)...)
		case name == "projects" && e.Host == claudeCode:
			for _, project := range members(&m.Value) {
				for _, m := range members(&project.Value) {
					if nameOf(m) == "mcpServers" {
						out = append(out, tableEntries(data, nameOf(project), &m.Value)...)
					}
				}
			}
		}
	}
	return out
}

func tableEntries(data []byte, path string, table *hujson.Value) []*entry {
	var out []*entry
	for _, m := range members(table) {
		v := m.Value
		en := &entry{path: path + "\x00" + nameOf(m), name: nameOf(m), start: v.StartOffset, end: v.EndOffset}
		en.text = data[en.start:en.end]
		en.object, _ = v.Value.(*hujson.Object)
		out = append(out, en)
	}
	return out
}

func members(v *hujson.Value) []*hujson.ObjectMember {
	if o, ok := v.Value.(*hujson.Object); ok {
		return membersOf(o)
	}
	return nil
}

func membersOf(o *hujson.Object) []*hujson.ObjectMember {
	var out []*hujson.ObjectMember
	for i := range o.Members {
		out = append(out, &o.Members[i])
	}
	return out
}

func nameOf(m *hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

// member returns the first member called name, or nil.
func member(o *hujson.Object, name string) *hujson.ObjectMember {
	for _, m := range membersOf(o) {
		if nameOf(m) == name {
			return m
		}
	}
	return nil
}

// string returns the string value of a member, or "".
func (en *entry) string(name string) string {
	if en.object == nil {
		return ""
	}
	if m := member(en.object, name); m != nil {
		return textOf(&m.Value)
	}
	return ""
}

func textOf(v *hujson.Value) string {
	if l, ok := v.Value.(hujson.Literal); ok && l.Kind() == '"' {
		return l.String()
	}
	return ""
}

// args returns the server's arguments up to one that is not a string.
func (en *entry) args() []string {
	var out []string
	if en.object == nil {
		return nil
	}
	if m := member(en.object, "args"); m != nil {
		if list, ok := m.Value.Value.(*hujson.Array); ok {
			for i := range list.Elements {
				out = append(out, textOf(&list.Elements[i]))
			}
		}
	}
	return out
}

// clone returns a copy of the server's object. It parses the text again, because hujson's
// Clone loses the comma after the last member.
func (en *entry) clone() (hujson.Value, *hujson.Object) {
	v, err := hujson.Parse(slices.Clone(en.text))
	if err != nil {
		panic(fmt.Sprintf("hosts: part of a file that was parsed can't be: %v", err)) // impossible
	}
	return v, v.Value.(*hujson.Object)
}
