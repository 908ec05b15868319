package router

import (
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// isModern decides the era of a client's message by its envelope or, without one, by the
// era of its header, which is spec.Unknown if there is none. A response, and initialize
// without an envelope, are always legacy.
//
// Spec: 2026-07-28, basic/versioning, Backward Compatibility with Initialization-Based
// Versions.
func isModern(m *wire.Message, header spec.Era) bool {
	switch {
	case m.Kind() == wire.Response:
		return false
	case hasEnvelope(m.Meta):
		return true
	}
	return header == spec.Modern && m.Method != spec.MethodInitialize
}

// hasModern reports whether the header of a batch, or one of its messages, is modern.
func hasModern(batch []byte, header spec.Era) bool {
	modern := header == spec.Modern
	for m := range wire.Elements(batch) {
		modern = modern || hasEnvelope(wire.Get(wire.Get(m, "params"), "_meta"))
	}
	return modern
}

// hasEnvelope reports whether the _meta of params is a modern envelope: whether it names a
// revision.
func hasEnvelope(meta []byte) bool { return wire.Get(meta, spec.MetaProtocolVersion) != nil }

// headerEra returns the era of the revision in the header, or spec.Unknown without one.
func headerEra(h http.Header) spec.Era {
	return spec.Revision(h.Get(spec.HeaderProtocolVersion)).Era()
}
