// Package release says which version of mcpbridge runs, whoever has built it.
package release

import (
	"cmp"
	"runtime/debug"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const module = "github.com/mcpbridge/mcpbridge"

// stamped is the version of a build that is not go install's: the linker sets it
// (-X github.com/mcpbridge/mcpbridge/internal/release.stamped=v1.2.3).
var stamped string

// Version returns the version of mcpbridge in this program: the one that was stamped, or
// the module's as the go command has noted it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return cmp.Or(stamped, noted(info), "(devel)")
}

// Implementation is what peers are told of this program.
//
// Spec: 2026-07-28, schema, Implementation.
func Implementation() []byte {
	return wire.AppendEdited(nil, nil,
		wire.Edit{Name: "name", Value: wire.Quote("mcpbridge")},
		wire.Edit{Name: "version", Value: wire.Quote(Version())})
}

// noted returns the version of the module in a program, which may be another one's.
func noted(info *debug.BuildInfo) string {
	if info.Main.Path == module {
		return info.Main.Version
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return ""
}
