package pin

import (
	"cmp"
	"maps"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Change is how a tool differs from what was accepted.
type Change struct {
	Tool string
	// Was is the definition that was accepted, nil for a new tool; Is that of the server,
	// nil for one that is gone.
	Was, Is []byte
}

// Compare returns how the definitions of a server's tools differ from what is kept, in the
// order of their names.
func (f *File) Compare(definitions [][]byte) []Change {
	var changes []Change
	there := make(map[string]bool)
	for _, d := range definitions {
		name, _ := wire.GetString(d, "name")
		there[name] = true
		if t := f.Tools[name]; !slices.Contains(t.Digests, Digest(d)) {
			changes = append(changes, Change{name, t.Definition, d})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Tools)) {
		if !there[name] {
			changes = append(changes, Change{Tool: name, Was: f.Tools[name].Definition})
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Tool, b.Tool) })
	return changes
}

// Accept makes a change the accepted state. A tool that is gone is forgotten.
func (f *File) Accept(c Change) {
	if c.Is == nil {
		delete(f.Tools, c.Tool)
		return
	}
	f.accept(c.Tool, Digest(c.Is), c.Is)
}
