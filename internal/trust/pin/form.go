package pin

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Digest returns the digest of a definition, as the server said it. It does not depend on the
// order of members, white space, or members that are null.
func Digest(definition []byte) string {
	var nulls []string
	for k, v := range wire.Members(definition) {
		if wire.IsNull(v) {
			nulls = append(nulls, k.String())
		}
	}
	sum := sha256.Sum256(wire.AppendCanonical(nil, wire.AppendWithoutNulls(nil, definition, nulls)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// shown returns a definition in the form of which files before forms had the digest, if it was
// mcpbridge pin that wrote them: without execution, and with a schema that has a type.
func shown(definition []byte) []byte {
	edits := []wire.Edit{{Name: "execution"}}
	switch schema := wire.Get(definition, "inputSchema"); {
	case schema == nil, wire.IsNull(schema):
		edits = append(edits, wire.Edit{Name: "inputSchema", Value: []byte(`{"type":"object"}`)})
	case wire.IsObject(schema) && wire.Get(schema, "type") == nil:
		typed := wire.AppendEdited(nil, schema, wire.Edit{Name: "type", Value: []byte(`"object"`)})
		edits = append(edits, wire.Edit{Name: "inputSchema", Value: typed})
	}
	return wire.AppendEdited(nil, definition, edits...)
}

// A form is a definition as it is compared.
type form struct {
	definition []byte // nil where the digests suffice
	said       string // the digest
	older      string // the digest of what was shown; empty if it was not needed
}

func formOf(definition []byte) form { return form{definition: definition, said: Digest(definition)} }

// digests returns the form without its definition, and with both digests.
func (m form) digests() form {
	if m.older == "" {
		m.older = Digest(shown(m.definition))
	}
	m.definition = nil
	return m
}

// accepts reports whether a tool with this form was accepted.
func (t *Tool) accepts(m *form) bool {
	if slices.Contains(t.Digests, m.said) {
		return true
	}
	return len(t.Older) > 0 && slices.Contains(t.Older, m.digests().older)
}
