package group

import "github.com/mcpbridge/mcpbridge/internal/trust/policy"

// A Known is what is known of a group without asking anybody.
type Known struct {
	Options // as they are used: Sealer, Memory and the like are not to be used
	// Lists are what each member has listed last, by its place in Members and the method.
	// What it was never asked for is not there.
	Lists []map[string]KnownList
}

// A KnownList is a list as a client of a member's endpoint got it last.
type KnownList struct {
	Kind  policy.Kind
	Names []string // by which the member's endpoint shows things, or URIs
	More  bool     // there are others, of which nothing is known
}

// Known returns what is known of the group. It does not block.
func (g *Group) Known() Known {
	b := g.back.Load()
	out := Known{Options: b.opts, Lists: make([]map[string]KnownList, len(b.opts.Members))}
	for i := range out.Lists {
		out.Lists[i] = make(map[string]KnownList)
		for _, method := range lists {
			if l, ok := b.known(i, listOf(method)); ok {
				out.Lists[i][method] = l
			}
		}
	}
	return out
}

// known returns what a member has listed last, in the time of this Back.
func (b *Back) known(i int, l list) (k KnownList, ok bool) {
	k.Kind = l.kind
	if p := b.listings.kept.slots[i][l.method].Load(); p != nil {
		k.Names, k.More, ok = p.names(), p.next != "", true
	}
	if k.More {
		var whole bool
		k.Names, whole = b.listings.kept.rests[i][l.method].AppendTo(k.Names)
		k.More = !whole
	}
	return k, ok
}
