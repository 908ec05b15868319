package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/gateway/internal/group/owners"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
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

// Prefix returns the prefix of a server that has none in its configuration.
func Prefix(server string) string { return names.Prefix(server) }

// LeastNameMax returns the least NameMax of a group with a prefix.
func LeastNameMax(prefix string) int { return names.LeastMax(prefix) }

// A naming takes names that clients see to those of members, and back. Safe for concurrent
// use.
type naming struct {
	max      int            // of names that clients see, in bytes
	prefixes map[string]int // the places of members by prefix; read-only
	// hashed has own names by shown names with a hash. Each is of one member, and what
	// principals see of it is up to that.
	hashed  *lru.Cache[string, string]
	reading gate
	tables  *owners.Tables
	former  *remembered
}

// newNaming returns the naming of a group, whose options are filled.
func newNaming(o *Options) (*naming, error) {
	n := &naming{max: o.NameMax, prefixes: make(map[string]int)}
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
	if n.hashed, err = lru.New[string, string](maxHashed); err != nil {
		return nil, err
	}
	if n.former, err = newRemembered(o.Memory); err != nil {
		return nil, err
	}
	prefer := make(map[string]int)
	for name, member := range o.Prefer {
		i := slices.IndexFunc(o.Members, func(m MemberOptions) bool { return m.Name == member })
		if i < 0 {
			return nil, fmt.Errorf("prefer: %q is to be that of server %q, which is not a member; name one", name, member)
		}
		prefer[name] = i
	}
	n.tables, err = owners.New(prefer)
	return n, err
}

// shown returns the name by which clients see what the member at i calls own. Resources have
// their own names, which are URIs.
func (b *Back) shown(i int, k policy.Kind, own string) string {
	if b.opts.Bare || k == policy.Resource {
		return own
	}
	return b.naming.shown(&b.opts.Members[i], own)
}

// shown returns the name that begins with the member's prefix.
func (n *naming) shown(m *MemberOptions, own string) string {
	shown, plain := names.InGroup(m.Name, m.Prefix, own, n.max)
	if !plain && len(own) <= maxName {
		n.hashed.Add(shown, own)
	}
	return shown
}

// isPlain reports whether an own name is shown as it is, after the prefix.
func (n *naming) isPlain(prefix, own string) bool { return names.IsPlain(prefix, own, n.max) }

// A memberAt is a member and its place in the group.
type memberAt struct {
	index int
	MemberOptions
	Member // as it is served now; not nil
}

var errNotServed = errors.New("it is not served at the moment")

// at returns the member at a place, or an error if it is not served now.
func (b *Back) at(i int) (memberAt, error) {
	o := b.opts.Members[i]
	m := b.opts.Find(o.Name)
	if m == nil {
		return memberAt{}, b.away(o.Name, errNotServed)
	}
	return memberAt{i, o, m}, nil
}

// away returns the error of a request that needs a member that can't be asked.
func (b *Back) away(member string, why error) error {
	return mcp.RefuseForNow("server %q of group %q can't be asked: %v; try again later", member, b.opts.Name, why)
}

// ownerOf returns the member that has the tool or prompt that clients see as shown, and its own
// name there. The error says that nobody has it, that several have it, or names the member that
// is away.
func (b *Back) ownerOf(ctx context.Context, req *mcp.Request, k policy.Kind, shown string) (m memberAt, own string, err error) {
	if b.opts.Bare {
		m, err = b.bareOwner(ctx, req, k, shown)
		return m, shown, err
	}
	prefix, own, _ := strings.Cut(shown, divider)
	i, known := b.naming.prefixes[prefix]
	if !known || len(prefix) == len(shown) {
		return m, "", unknown(req, k, shown)
	}
	switch plain := b.naming.isPlain(prefix, own); {
	case !plain && !names.EndsInHash(own):
		return m, "", unknown(req, k, shown) // another spelling of what has a name with a hash
	case !plain:
		return b.ownerOfHashed(ctx, req, k, i, shown)
	}
	m, err = b.at(i)
	return m, own, err
}

// unknown returns the error that says that there is nothing of a name.
func unknown(req *mcp.Request, k policy.Kind, shown string) error {
	op := policy.Use(req.Method, k, shown)
	return names.Unknown(req.Era, &op)
}

// ownerOfHashed is ownerOf for a name with a hash, which begins with the prefix of the member at
// i. If the own name is not at hand, as at another replica, it is looked for in the member's list.
func (b *Back) ownerOfHashed(ctx context.Context, req *mcp.Request, k policy.Kind, i int, shown string) (memberAt, string, error) {
	m, err := b.at(i)
	if err != nil {
		return m, "", err
	}
	own, ok := b.naming.hashed.Get(shown)
	if ok {
		return m, own, nil
	}
	leave := b.naming.reading.enter(ctx, gateKey{owners.KeyOf(req, k), i})
	defer leave()
	if own, ok = b.naming.hashed.Get(shown); ok { // somebody else has looked for it
		return m, own, nil
	}
	own, err = b.findHashed(ctx, req, k, m, shown)
	return m, own, err
}

// findHashed reads all of a member's list to find out whose name is shown, and has the others
// at hand.
func (b *Back) findHashed(ctx context.Context, req *mcp.Request, k policy.Kind, m memberAt, shown string) (own string, err error) {
	r := b.namesReader(req, k).read(ctx, place{member: m.index})
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case r.err != nil:
		return "", mcp.RefuseForNow("the names of server %q of group %q are not known: %v; list the %ss, or try again later",
			m.Name, b.opts.Name, mcp.WireError(r.err).Message, k)
	}
	err = unknown(req, k, shown)
	for _, name := range r.names() {
		if !b.naming.isPlain(m.Prefix, name) && b.naming.shown(&m.MemberOptions, name) == shown {
			own, err = name, nil
		}
	}
	return own, err
}

// A gateKey is what is read: lists of a client, of one member or of every one.
type gateKey struct {
	owners.Key
	member int
}

const everyMember = -1

// A gate lets one goroutine at a time do something of a key, so that what many need at once is
// done once. Its zero value is open, and it is safe for concurrent use.
type gate struct {
	// mu guards busy. It is held for map work only.
	mu   sync.Mutex
	busy map[gateKey]chan struct{} // closed when the goroutine is done
}

// enter waits, once, while another goroutine does what the caller wants to do, or until ctx ends.
// The caller then looks whether that is still to be done, and calls leave.
func (g *gate) enter(ctx context.Context, k gateKey) (leave func()) {
	g.mu.Lock()
	if g.busy == nil {
		g.busy = make(map[gateKey]chan struct{})
	}
	done, taken := g.busy[k]
	if !taken {
		done = make(chan struct{})
		g.busy[k] = done
	}
	g.mu.Unlock()
	if !taken {
		return func() {
			g.mu.Lock()
			delete(g.busy, k)
			g.mu.Unlock()
			close(done)
		}
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	return func() {}
}
