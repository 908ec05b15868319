package owners

import (
	"bytes"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// MaxName bounds the names of tools and prompts, in bytes as they are written: up to some hundred
// thousand of them are kept, to know who has them. What has a longer one is left out of lists.
const MaxName = 1024

// IsName reports whether a value can be the name of a tool or a prompt.
func IsName(v []byte) bool { return len(v) >= 2 && v[0] == '"' && len(v) <= MaxName }

// Look returns what a page of a list mentions, of which array has the items, and names the own
// names of those that clients see; nobody asks for those of tools and prompts.
func (m *URIs) Look(method string, array []byte, names []string) (f Mentions) {
	switch method {
	case spec.MethodResourcesList:
		f.names = make([]uint64, len(names))
		for i, name := range names {
			f.names[i] = m.digest("", name)
		}
	case spec.MethodResourcesTemplates:
		f.templates = names
	case spec.MethodToolsList:
		if bytes.Contains(array, []byte(`"ui"`)) { // as few have
			return m.lookForApps(array)
		}
	}
	slices.Sort(f.names)
	return f
}

// lookForApps is Look for tools.
func (m *URIs) lookForApps(array []byte) (f Mentions) {
	for text, v := range wire.NamedElements(array, "name") {
		ui := wire.Get(wire.Get(text, "_meta"), "ui")
		if uri, ok := wire.GetString(ui, "resourceUri"); ok {
			f.Apps = append(f.Apps, uri)
		}
		if isForApps(ui) && IsName(v) {
			f.names = append(f.names, m.digest("", wire.Unquote(v)))
		}
	}
	slices.Sort(f.names)
	return f
}

// isForApps reports whether apps may call a tool with this _meta.ui, which may be nil.
func isForApps(ui []byte) bool {
	if !wire.IsObject(ui) {
		return false
	}
	visibility := wire.Get(ui, "visibility")
	return visibility == nil || wire.IsNull(visibility) || slices.Contains(wire.Strings(visibility), "app")
}
