package router

import (
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A claim is what comes beside a client's message and tells of its era.
type claim struct {
	revision spec.Revision // in the header; empty without one, as on a connection
	session  bool          // a session is named, or open on the connection
}

// claimOf returns the claim of the headers of an HTTP request.
func claimOf(h http.Header) claim {
	return claim{spec.Revision(h.Get(spec.HeaderProtocolVersion)), h.Get(spec.HeaderSession) != ""}
}

// eras decide of which era what clients send is, as far as a server's quirks are tolerated.
type eras struct {
	quirks *quirks.Recorder // nil tolerates them untold
}

// eraOfClaim returns the era that a claim tells of: that of the header, or legacy if a session is
// named although the header names a known modern revision. Whose session it is, and whether it
// lives, the legacy front says. It is spec.Unknown without a header.
func (e eras) eraOfClaim(c claim) spec.Era {
	era := c.revision.Era()
	if era == spec.Modern && c.session && c.revision.Known() && e.quirks.Tolerates(quirks.HeaderRevision) {
		return spec.Legacy
	}
	return era
}

// eraOf decides the era of a client's message, once for all that is done with it: by its envelope
// or, without one that counts, by what comes beside it. A response, and initialize without an
// envelope, are always legacy.
//
// Spec: 2026-07-28, basic/versioning, Backward Compatibility with Initialization-Based
// Versions.
func (e eras) eraOf(m *wire.Message, c claim) spec.Era {
	switch {
	case m.Kind() == wire.Response:
		return spec.Legacy
	case hasEnvelope(m.Meta) && !e.strays(m, c):
		return spec.Modern
	case m.Method != spec.MethodInitialize && e.eraOfClaim(c) == spec.Modern:
		return spec.Modern
	}
	return spec.Legacy
}

// strays reports whether the envelope of m counts for nothing: the header says nothing of its
// era, or legacy, and m is initialize, or of a session and no modern message: its method is of
// legacy revisions alone, or its envelope names one of them or lacks a member, and its method is
// not of the modern revision alone.
func (e eras) strays(m *wire.Message, c claim) bool {
	if c.revision != "" && !(c.revision.Known() && c.revision.Era() == spec.Legacy) || !e.quirks.Tolerates(quirks.StrayEnvelope) {
		return false
	}
	if m.Method == spec.MethodInitialize {
		return true
	}
	named, _ := wire.GetString(m.Meta, spec.MetaProtocolVersion)
	claimed := spec.Revision(named)
	modernOnly := m.Method == spec.MethodDiscover || m.Method == spec.MethodListen
	return c.session && claimed.Known() && !modernOnly &&
		(claimed.Era() == spec.Legacy || spec.LegacyOnly(m.Method) || !wire.IsObject(wire.Get(m.Meta, spec.MetaClientCapabilities)))
}

// eraOfBatch decides the era of a batch: it is modern if one of its messages is, or what comes
// beside it.
func (e eras) eraOfBatch(batch []byte, c claim) spec.Era {
	modern := e.eraOfClaim(c) == spec.Modern
	for text := range wire.Elements(batch) {
		method, _ := wire.GetString(text, "method")
		m := wire.Message{Method: method, Meta: wire.Get(wire.Get(text, "params"), "_meta")}
		modern = modern || hasEnvelope(m.Meta) && !e.strays(&m, c)
	}
	if modern {
		return spec.Modern
	}
	return spec.Legacy
}

// hasEnvelope reports whether the _meta of params is a modern envelope: whether it names a
// revision.
func hasEnvelope(meta []byte) bool { return wire.Get(meta, spec.MetaProtocolVersion) != nil }
