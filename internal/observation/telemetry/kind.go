package telemetry

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A kind is what the attributes of many spans have in common.
type kind struct {
	server, era, method, revision string
	outcome                       string // of a client's request
	transport, protocol, version  string // empty for what is unknown
	address                       string // of a server
}

// An encodedKind is a kind with its attributes.
type encodedKind struct {
	kind
	text []byte
}

// kinds have the attributes of a few kinds. Safe for concurrent use.
type kinds [64]atomic.Pointer[encodedKind]

// appendKind appends the attributes of k.
func (t *Tracer) appendKind(dst []byte, k *kind) []byte {
	place := &t.kinds[k.place()]
	known := place.Load()
	if known != nil && known.kind == *k {
		return append(dst, known.text...)
	}
	// Kinds that share a place get it once in 64 times: storing takes longer than appending.
	if k.isFixed() && (known == nil || rand.Uint32()%64 == 0) {
		place.Store(&encodedKind{k.clone(), t.appendAttributes(nil, k)})
	}
	return t.appendAttributes(dst, k)
}

// place returns a number that most other kinds do not have.
func (k *kind) place() uint {
	n := uint(len(k.server)) + uint(len(k.method))<<1 + uint(len(k.outcome))<<2 + uint(len(k.address))<<3
	if k.server != "" {
		n += uint(k.server[len(k.server)-1]) << 1
	}
	return n % uint(len(kinds{}))
}

// isFixed reports whether k has no text of a client's or server's own choice, in which a
// secret might be that is not known yet.
func (k *kind) isFixed() bool {
	return spec.Defined(k.method) && (k.revision == "" || spec.Revision(k.revision).Known()) && len(k.version) < len("10.10")
}

// transportOf returns the transport of a protocol. A pipe has none.
func transportOf(protocol string) string {
	if protocol == "" {
		return "pipe"
	}
	return "tcp"
}

// clone returns a copy that outlives the request.
func (k *kind) clone() kind {
	out := *k
	out.method, out.revision, out.version = strings.Clone(k.method), strings.Clone(k.revision), strings.Clone(k.version)
	return out
}

// appendAttributes appends the attributes of k, which have not been encoded before.
func (t *Tracer) appendAttributes(dst []byte, k *kind) []byte {
	dst = appendText(dst, spanAttributes, attrServer, k.server)
	dst = appendText(dst, spanAttributes, attrEra, k.era)
	dst = appendText(dst, spanAttributes, attrMethod, k.method)
	dst = appendText(dst, spanAttributes, attrRevision, t.text(k.revision))
	dst = appendText(dst, spanAttributes, attrOutcome, k.outcome)
	dst = appendText(dst, spanAttributes, attrTransport, k.transport)
	dst = appendText(dst, spanAttributes, attrProtocol, k.protocol)
	dst = appendText(dst, spanAttributes, attrProtocolVersion, strings.TrimSuffix(k.version, ".0"))
	return hostPort(dst, attrServerAddress, attrServerPort, k.address)
}
