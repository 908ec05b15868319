package group

import (
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// maxHashed bounds the own names that are at hand for names with a hash. Others are looked
// for in the member's lists.
const maxHashed = 8192

// A naming takes names that clients see to those of members, and back. Safe for concurrent
// use.
type naming struct {
	bare     bool           // names have no prefixes
	max      int            // of names that clients see, in bytes
	prefixes names.Prefixes // by the place of the member; none if bare
	// hashed has own names by shown names with a hash. Each is of one member, and what
	// principals see of it is up to that.
	hashed *lru.Cache[string, string]
}

// newNaming returns the naming of a group, whose options are filled.
func newNaming(o *Options) (*naming, error) {
	n := &naming{bare: o.Bare, max: o.NameMax}
	seen, prefixes := make(map[string]bool), make(map[string]int)
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
		if other, taken := prefixes[m.Prefix]; taken {
			return nil, fmt.Errorf("servers %q and %q would both have the prefix %q; give one of them a prefix of its own", o.Members[other].Name, m.Name, m.Prefix)
		}
		if least := names.LeastMax(m.Prefix); o.NameMax < least {
			return nil, fmt.Errorf("names of at most %d bytes have no room for the prefix %q of server %q; allow %d, or give it a shorter prefix", o.NameMax, m.Prefix, m.Name, least)
		}
		prefixes[m.Prefix] = i
		n.prefixes.Add(m.Prefix)
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
