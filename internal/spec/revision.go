package spec

import (
	"fmt"
	"slices"
)

// A Revision is a dated version of the protocol, as it appears on the wire.
//
// Spec: 2026-07-28, basic/versioning, Protocol Version Negotiation.
type Revision string

// The published revisions.
const (
	Rev20241105 Revision = "2024-11-05"
	Rev20250326 Revision = "2025-03-26"
	Rev20250618 Revision = "2025-06-18"
	Rev20251125 Revision = "2025-11-25"
	Rev20260728 Revision = "2026-07-28"
)

// LatestLegacy is the revision that a back offers in initialize. LatestModern is the one
// in the envelope of its modern requests.
const (
	LatestLegacy = Rev20251125
	LatestModern = Rev20260728
)

var (
	legacyRevisions = []Revision{Rev20251125, Rev20250618, Rev20250326, Rev20241105}
	modernRevisions = []Revision{Rev20260728}
)

// An Era tells how client and server agree on a revision: by a handshake that opens a
// session (Legacy), or by metadata on every request (Modern).
//
// Spec: 2026-07-28, basic/versioning, Terminology.
type Era uint8

// The eras. The zero Era is Unknown: not yet detected.
const (
	Unknown Era = iota
	Legacy
	Modern
)

// String returns "legacy", "modern" or "unknown".
func (e Era) String() string {
	switch e {
	case Legacy:
		return "legacy"
	case Modern:
		return "modern"
	}
	return "unknown"
}

// Speaks returns the revisions of the era as a text for people.
func (e Era) Speaks() string {
	switch e {
	case Legacy:
		return string(LatestLegacy) + " and earlier (sessions)"
	case Modern:
		return string(LatestModern) + " (no sessions)"
	}
	return "an unknown revision"
}

// Era returns the era of a revision. The date decides for an unpublished revision, so
// that a request of a later modern revision is refused as an unsupported modern revision
// and not mistaken for a legacy one. The era of a revision that is not a date is Unknown.
func (r Revision) Era() Era {
	switch {
	case slices.Contains(legacyRevisions, r):
		return Legacy
	case slices.Contains(modernRevisions, r):
		return Modern
	case !r.dated():
		return Unknown
	case r >= Rev20260728:
		return Modern
	}
	return Legacy
}

// Known reports whether r is a published revision of either era.
func (r Revision) Known() bool {
	return slices.Contains(legacyRevisions, r) || slices.Contains(modernRevisions, r)
}

// dated reports whether r has the form of a revision: YYYY-MM-DD.
func (r Revision) dated() bool {
	if len(r) != len("2006-01-02") {
		return false
	}
	for i := range len(r) {
		if c := r[i]; i == 4 || i == 7 {
			if c != '-' {
				return false
			}
		} else if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// Revisions returns the published revisions of an era, newest first. The slice
// is the caller's.
func Revisions(e Era) []Revision {
	switch e {
	case Legacy:
		return slices.Clone(legacyRevisions)
	case Modern:
		return slices.Clone(modernRevisions)
	}
	return nil
}

// AllRevisions returns the published revisions, newest first. The caller owns the slice.
func AllRevisions() []Revision { return slices.Concat(modernRevisions, legacyRevisions) }

// A RevisionError reports that a peer requested an unsupported revision.
//
// Spec: 2026-07-28, basic/versioning, Protocol Version Negotiation.
type RevisionError struct {
	Requested Revision
	Supported []Revision // newest first, never empty
}

func (e *RevisionError) Error() string {
	return fmt.Sprintf("unsupported revision %q, want one of %q", e.Requested, e.Supported)
}
