package projection

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// AppendServerCapabilities appends to dst the capabilities that a client of rev
// is told of, for caps, those of a modern server. What the revisions know under one
// name means the same in all of them; those that rev does not know stay, since
// clients pass over them. Tasks do not cross: neither the extension nor what
// 2025-11-25 calls so.
//
// Spec: 2026-07-28, server/discover, Server Capabilities.
func AppendServerCapabilities(dst []byte, _ spec.Revision, caps []byte) []byte {
	dst = append(dst, '{')
	for k, v := range wire.Members(caps) {
		switch {
		case k.Is("tasks"), wire.IsNull(v) && slices.Contains(serverCapabilities, k.String()):
			continue
		case k.Is("extensions") || k.Is("experimental"):
			dst = appendExtensions(dst, k, v)
			continue
		}
		dst = append(append(dst, k...), ':')
		dst = append(append(dst, v...), ',')
	}
	return closed(dst, '}')
}

var (
	serverCapabilities = []string{"experimental", "extensions", "logging", "completions", "prompts", "resources", "tools"}
	clientCapabilities = []string{"experimental", "extensions", "roots", "sampling", "elicitation"}
)

// AppendClientCapabilities appends to dst the capabilities that a modern server
// is told of, for caps, those that a client of rev declared. What is newer than rev
// stays: SDKs declare what they can do whatever revision the transport has them
// speak, and a client that says that it can be asked can be.
//
// Spec: 2026-07-28, basic/index, Client Capabilities.
func AppendClientCapabilities(dst []byte, _ spec.Revision, caps []byte) []byte {
	dst = append(dst, '{')
	for k, v := range wire.Members(caps) {
		switch {
		case k.Is("tasks"), wire.IsNull(v) && slices.Contains(clientCapabilities, k.String()):
			continue
		case k.Is("extensions") || k.Is("experimental"):
			dst = appendExtensions(dst, k, v)
			continue
		case k.Is("roots") && wire.IsObject(v):
			v = wire.AppendEdited(nil, v, wire.Edit{Name: "listChanged"})
		}
		dst = append(append(dst, k...), ':')
		dst = append(append(dst, v...), ',')
	}
	return closed(dst, '}')
}

// appendExtensions appends a member that is a set of extensions, and a comma,
// without the extension that does not cross; nothing if that was all.
func appendExtensions(dst []byte, k wire.Key, set []byte) []byte {
	if wire.Get(set, spec.ExtensionTasks) != nil {
		set = wire.AppendEdited(nil, set, wire.Edit{Name: spec.ExtensionTasks})
		if isEmpty(set) {
			return dst
		}
	}
	dst = append(append(dst, k...), ':')
	return append(append(dst, set...), ',')
}
