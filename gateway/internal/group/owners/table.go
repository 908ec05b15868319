package owners

import "maps"

// Owners of a name that are no place.
const (
	Contested = -1 // several members have it
	Nobody    = -2 // no member that is known has it
)

// Names are the names of one list of a member. They are immutable; nil stands for names that are
// not known.
type Names struct{ set map[string]struct{} }

// NewNames returns a set of names.
func NewNames(names []string) *Names {
	n := &Names{make(map[string]struct{}, len(names))}
	for _, name := range names {
		n.set[name] = struct{}{}
	}
	return n
}

func (n *Names) has(name string) bool {
	if n == nil {
		return false
	}
	_, ok := n.set[name]
	return ok
}

// is reports whether two sets have the same names.
func (n *Names) is(other *Names) bool { return n != nil && maps.Equal(n.set, other.set) }

// A Table says which member has which name. It is immutable.
type Table struct {
	sets   []*Names       // by the member's place
	owners map[string]int // places of members, or Contested
	users  int            // clients that have it; guarded by Tables.mu
}

// Owner returns the place of the member that has a name, [Contested] or [Nobody].
func (t *Table) Owner(name string) (place int) { return OwnerOf(t, name) }

// OwnerOf is [Table.Owner], also for a name that is no string yet.
func OwnerOf[T string | []byte](t *Table, name T) (place int) {
	if place, ok := t.owners[string(name)]; ok {
		return place
	}
	return Nobody
}

// Having returns the places of all members that have a name.
func (t *Table) Having(name string) (places []int) {
	for i, s := range t.sets {
		if s.has(name) {
			places = append(places, i)
		}
	}
	return places
}

// Unknown returns the places of the members whose names are not known.
func (t *Table) Unknown() (places []int) {
	for i, s := range t.sets {
		if s == nil {
			places = append(places, i)
		}
	}
	return places
}

// newTable makes a table of sets. prefer has places of members by name.
func newTable(sets []*Names, prefer map[string]int) *Table {
	t := &Table{sets: sets, owners: make(map[string]int)}
	for i, s := range sets {
		if s == nil {
			continue
		}
		for name := range s.set {
			if _, taken := t.owners[name]; taken {
				t.owners[name] = Contested
			} else {
				t.owners[name] = i
			}
		}
	}
	for name, i := range prefer {
		if sets[i].has(name) {
			t.owners[name] = i
		}
	}
	return t
}
