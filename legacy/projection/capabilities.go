package projection

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// AppendServerCapabilities appends to dst the capabilities for a client of rev, where
// caps are those of a modern server. A capability has the same meaning in all revisions
// that have it. Capabilities that rev does not have are kept, since clients ignore them.
// Tasks are removed, both the extension and the tasks of 2025-11-25.
//
// Spec: 2026-07-28, server/discover, Server Capabilities.
func AppendServerCapabilities(dst []byte, _ spec.Revision, caps []byte) []byte {
	return appendCapabilities(dst, caps, serverCapabilities)
}

var (
	serverCapabilities = []string{"experimental", "extensions", "logging", "completions", "prompts", "resources", "tools"}
	clientCapabilities = []string{"experimental", "extensions", "roots", "sampling", "elicitation"}
)

// AppendClientCapabilities appends to dst the capabilities for a modern server, where
// caps are those of a client of rev. Capabilities newer than rev are kept: SDKs declare
// all that they support, whatever revision they negotiate, so a declared capability
// works.
//
// Spec: 2026-07-28, basic/index, Client Capabilities.
func AppendClientCapabilities(dst []byte, _ spec.Revision, caps []byte) []byte {
	return appendCapabilities(dst, caps, clientCapabilities)
}

// appendCapabilities appends capabilities, of which those that are known must not be null.
func appendCapabilities(dst, caps []byte, known []string) []byte {
	dst = append(dst, '{')
	for k, v := range wire.Members(caps) {
		isKnown := slices.Contains(known, k.String())
		switch {
		case k.Is("tasks"), wire.IsNull(v) && isKnown:
			continue
		case k.Is("extensions") || k.Is("experimental"):
			dst = appendExtensions(dst, k, v)
			continue
		case k.Is("roots") && isKnown && wire.IsObject(v):
			v = wire.AppendEdited(nil, v, wire.Edit{Name: "listChanged"})
		}
		dst = append(append(dst, k...), ':')
		dst = append(append(dst, v...), ',')
	}
	return closed(dst, '}')
}

// appendExtensions appends a member that is a set of extensions, and a comma, without the
// tasks extension. It appends nothing if no extension is left.
func appendExtensions(dst []byte, k wire.Key, set []byte) []byte {
	if wire.Get(set, spec.ExtensionTasks) != nil {
		set = wire.AppendEdited(nil, set, wire.Edit{Name: spec.ExtensionTasks})
		if wire.IsEmptyObject(set) {
			return dst
		}
	}
	dst = append(append(dst, k...), ':')
	return append(append(dst, set...), ',')
}
