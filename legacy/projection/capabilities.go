package projection

import (
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// AppendServerCapabilities appends to dst the capabilities that a client of rev
// is told of, for caps, those of a modern server.
func AppendServerCapabilities(dst []byte, rev spec.Revision, caps []byte) []byte {
	return wire.AppendEdited(dst, caps)
}

// AppendClientCapabilities appends to dst the capabilities that a modern server
// is told of, for caps, those of a client of rev.
func AppendClientCapabilities(dst []byte, rev spec.Revision, caps []byte) []byte {
	return wire.AppendEdited(dst, caps, wire.Edit{Name: "tasks"})
}
