package group

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

const (
	// divider stands between a prefix, which does not have it, and an own name.
	divider = "__"
	// maxPrefix bounds prefixes, in bytes.
	maxPrefix = 24
	// hashLen is the length of what a name ends in that is not shown as it is: an underscore
	// and 16 hexadecimal digits.
	hashLen = 1 + 16
)

// Prefix returns the prefix of a server that has none in its configuration: its name, made
// fit for the names that clients see.
func Prefix(server string) string {
	p := fit(server)
	for strings.Contains(p, divider) {
		p = strings.ReplaceAll(p, divider, "_")
	}
	return strings.TrimRight(p[:min(len(p), maxPrefix)], "_")
}

// fit returns a name with a dash for each character that not all clients take.
func fit(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && isFit(byte(r)) {
			return r
		}
		return '-'
	}, name)
}

func isFit(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// A memberAt is a member and its place in the group.
type memberAt struct {
	index int
	MemberOptions
	Member // as it is served now; not nil
}

// at returns the member at a place, or an error if it is not served now.
func (b *Back) at(i int) (memberAt, error) {
	o := b.opts.Members[i]
	m := b.opts.Find(o.Name)
	if m == nil {
		return memberAt{}, b.away(o.Name, fmt.Errorf("it is not served at the moment"))
	}
	return memberAt{i, o, m}, nil
}

// away returns the error of a request that needs a member that can't be asked.
func (b *Back) away(member string, why error) error {
	return mcp.RefuseForNow("server %q of group %q: %v; try again later", member, b.opts.Name, why)
}

// ownerOf returns the member that has what clients of a profile see as shown, and its own name
// there. The error says that nobody has it, that several have it, or names the member that is
// away.
func (b *Back) ownerOf(ctx context.Context, req *mcp.Request, k policy.Kind, shown string) (m memberAt, own string, err error) {
	prefix, own, ok := strings.Cut(shown, divider)
	for i := range b.opts.Members {
		if ok && b.opts.Members[i].Prefix == prefix {
			m, err = b.at(i)
			return m, own, err
		}
	}
	op := policy.Use(req.Method, k, shown)
	return m, "", names.Unknown(req.Era, &op)
}

// shown returns the name by which clients see what the member at i calls own. Resources have
// their own names, which are URIs.
func (b *Back) shown(i int, k policy.Kind, own string) string {
	if b.opts.Bare || k == policy.Resource {
		return own
	}
	o := &b.opts.Members[i]
	name := o.Prefix + divider + own
	if fit(name) == name && len(name) <= b.opts.NameMax && !looksHashed(name) {
		return name
	}
	digest := sha256.Sum256([]byte(o.Name + "\x00" + own)) // no server's name has a zero
	name = fit(name)
	return name[:min(len(name), b.opts.NameMax-hashLen)] + "_" + hex.EncodeToString(digest[:8])
}

// looksHashed reports whether a name ends as one that was cut.
func looksHashed(name string) bool {
	if len(name) < hashLen || name[len(name)-hashLen] != '_' {
		return false
	}
	for _, c := range []byte(name[len(name)-hashLen+1:]) {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return true
}
