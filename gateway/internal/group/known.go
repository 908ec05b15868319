package group

import (
	"slices"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

const maxRestNames = 2048 // names that are known of a list after its first page

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
		k.Names, whole = b.listings.kept.rests[i][l.method].appendTo(k.Names)
		k.More = !whole
	}
	return k, ok
}

// A rest has names of a list after its first page, for people who look. Its zero value is empty, and
// it is safe for concurrent use.
type rest struct {
	// mu guards the fields below. It is held for slice work only.
	mu    sync.Mutex
	names []string
	has   map[string]struct{} // names; nil if there are none
	whole bool                // the last page was among those that were read, and nothing was left out
}

// add adds a page. Clients read the same pages again.
func (r *rest) add(p *page) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.whole {
		return
	}
	if r.has == nil {
		r.has = make(map[string]struct{})
	}
	for _, it := range p.items {
		if len(r.names) == maxRestNames {
			return
		}
		if _, has := r.has[it.name]; !has {
			r.names, r.has[it.name] = append(r.names, it.name), struct{}{}
		}
	}
	r.whole = p.next == ""
}

func (r *rest) clear() {
	r.mu.Lock()
	r.names, r.has, r.whole = nil, nil, false
	r.mu.Unlock()
}

// appendTo appends the names that others don't have to these, and reports whether that is all.
func (r *rest) appendTo(names []string) (all []string, whole bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.names {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, r.whole
}
