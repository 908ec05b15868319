package group

import (
	"fmt"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

const (
	divider = names.Divider
	hashLen = names.HashLen
	// maxHashed bounds the own names that are at hand for names with a hash. Others are looked
	// for in the member's lists.
	maxHashed = 8192
)

// LeastNameMax returns the least NameMax of a group with a prefix.
func LeastNameMax(prefix string) int { return names.LeastMax(prefix) }

// A naming takes names that clients see to those of members, and back. Safe for concurrent
// use.
type naming struct {
	bare     bool           // names have no prefixes
	max      int            // of names that clients see, in bytes
	prefixes map[string]int // the places of members by prefix; read-only
	// hashed has own names by shown names with a hash. Each is of one member, and what
	// principals see of it is up to that.
	hashed *lru.Cache[string, string]
}

// newNaming returns the naming of a group, whose options are filled.
func newNaming(o *Options) (*naming, error) {
	n := &naming{bare: o.Bare, max: o.NameMax, prefixes: make(map[string]int)}
	seen := make(map[string]bool)
	for i, m := range o.Members {
		if seen[m.Name] {
			return nil, fmt.Errorf("server %q is there twice; remove one of them", m.Name)
		}
		seen[m.Name] = true
		if o.Bare {
			continue
		}
		if !names.IsPrefix(m.Prefix) {
			return nil, fmt.Errorf("%q can't be the prefix of server %q: it is letters, digits, - and single _, not at the end, at most %d", m.Prefix, m.Name, names.MaxPrefix)
		}
		if other, taken := n.prefixes[m.Prefix]; taken {
			return nil, fmt.Errorf("servers %q and %q would both have the prefix %q; give one of them a prefix of its own", o.Members[other].Name, m.Name, m.Prefix)
		}
		if least := LeastNameMax(m.Prefix); o.NameMax < least {
			return nil, fmt.Errorf("names of at most %d bytes have no room for the prefix %q of server %q; allow %d, or give it a shorter prefix", o.NameMax, m.Prefix, m.Name, least)
		}
		n.prefixes[m.Prefix] = i
	}
	var err error
	n.hashed, err = lru.New[string, string](maxHashed)
	return n, err
}

// isShown reports whether clients see own names of a kind as they are. Those of resources are URIs.
func (n *naming) isShown(k policy.Kind) bool { return n.bare || k == policy.Resource }

// shown returns the name by which clients see what a member calls own: in a group with prefixes it
// begins with the member's.
func (n *naming) shown(m *MemberOptions, k policy.Kind, own string) string {
	if n.isShown(k) {
		return own
	}
	shown, plain := names.InGroup(m.Name, m.Prefix, own, n.max)
	if !plain && len(own) <= owners.MaxName {
		n.hashed.Add(shown, own)
	}
	return shown
}

// isPlain reports whether an own name is shown as it is, after the prefix.
func (n *naming) isPlain(prefix, own string) bool { return names.IsPlain(prefix, own, n.max) }

// prefixed returns the place of the member whose prefix a name begins with; -1 if there is none,
// or the group has no prefixes.
func (n *naming) prefixed(name string) int {
	if prefix, _, ok := strings.Cut(name, divider); ok {
		if i, known := n.prefixes[prefix]; known {
			return i
		}
	}
	return -1
}
