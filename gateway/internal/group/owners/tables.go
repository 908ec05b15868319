package owners

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

const (
	// MaxAge is how long a table is used without a new look at the lists: changes are told to
	// those alone who subscribe to them. After half of that, and after UnsureAge if a member's
	// names may be others, it is used while the lists are read again.
	MaxAge    = 5 * time.Minute
	UnsureAge = 5 * time.Second

	// maxTables bounds the clients and kinds with a table, and maxNames the names in all
	// tables; equal ones count once. For others the lists are read again.
	maxTables = 4096
	maxNames  = 1 << 19
)

// A Key is a client at the group and a kind of things with names. Clients that see different
// things may share a profile.
type Key struct {
	Scope     string
	Principal mcp.Principal
	Kind      policy.Kind
}

// KeyOf returns the key of the table for a request.
func KeyOf(req *mcp.Request, k policy.Kind) Key { return Key{req.Profile.Scope, req.Principal, k} }

// A Found is the table of one client.
type Found struct {
	*Table
	Made time.Time
	due  time.Time // when the lists are to be read again
	read int       // what Begin returned before its lists were read
}

// Tables has the tables of all clients. Safe for concurrent use.
type Tables struct {
	prefer map[string]int // places of members, by name
	most   int            // of names
	recent recents        // some that were found

	// mu guards the fields below and the users of tables. It is held for map work only.
	mu      sync.Mutex
	of      *simplelru.LRU[Key, Found]
	names   int                    // in all tables
	latest  map[list]*Names        // what was read last
	last    map[policy.Kind]*Table // what was made last
	changes int                    // that were told
}

// recents are tables of the clients that send most, at hand: each may be used until a time. What changes
// in Tables empties them.
type recents [16]atomic.Pointer[recent]

type recent struct {
	at    Key
	found Found
	until time.Time
}

// place returns where the table for a key is: a scope ends in a digest.
func (r *recents) place(at *Key) *atomic.Pointer[recent] {
	if at.Scope == "" {
		return &r[0]
	}
	return &r[int(at.Scope[len(at.Scope)-1])%len(r)]
}

func (r *recents) clear() {
	for i := range r {
		r[i].Store(nil)
	}
}

// A list is the list of a member that has names of a kind.
type list struct {
	kind  policy.Kind
	place int
}

// New returns Tables without a table. prefer has, for names that several members may have, the
// place of the one to which they belong.
func New(prefer map[string]int) (*Tables, error) {
	t := &Tables{prefer: prefer, most: maxNames, latest: make(map[list]*Names), last: make(map[policy.Kind]*Table)}
	var err error
	t.of, err = simplelru.NewLRU(maxTables, func(_ Key, f Found) { t.leftLocked(f.Table) })
	return t, err
}

// Find returns the table of a client, unless it is too old, and reports whether the caller is to
// have the lists read again.
func (t *Tables) Find(at Key) (found Found, due, ok bool) {
	now, place := time.Now(), t.recent.place(&at)
	last := place.Load()
	if last != nil && last.at == at && now.Before(last.until) && rand.Uint32()%64 != 0 { // now and then it is looked up, so that others leave before it
		return last.found, false, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok = t.of.Get(at)
	if !ok || now.Sub(found.Made) >= MaxAge {
		return Found{}, false, false
	}
	if due = !now.Before(found.due); due {
		found.due = now.Add(UnsureAge)
		t.of.Add(at, found) // whoever comes next need not
	}
	if last == nil || !now.Before(last.until) || rand.Uint32()%16 == 0 { // those that share a place get it now and then
		until := found.due
		if end := found.Made.Add(MaxAge); end.Before(until) {
			until = end
		}
		place.Store(&recent{at, found, until})
	}
	return found, due, true
}

// Forget has the lists of a kind read again for all clients of a scope, since one has changed.
func (t *Tables) Forget(scope string, k policy.Kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	t.recent.clear()
	for _, at := range t.of.Keys() {
		if at.Scope == scope && at.Kind == k {
			t.of.Remove(at)
		}
	}
}

// Clear has all lists read again.
func (t *Tables) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	t.recent.clear()
	t.of.Purge()
}

// Begin is called before lists are read for Put.
func (t *Tables) Begin() (changes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changes
}

// Put makes the table of a client of what was read since Begin returned changes: the names of all
// members, by their place. sure says that all were read.
func (t *Tables) Put(at Key, sets []*Names, sure bool, changes int) *Table {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, s := range sets {
		sets[i] = t.sharedLocked(list{at.Kind, i}, s)
	}
	made := t.last[at.Kind]
	if made == nil || !slices.Equal(made.sets, sets) {
		made = newTable(sets, t.prefer)
		t.last[at.Kind] = made
	}
	if had, ok := t.of.Peek(at); ok && had.read > changes { // which was read after a later change
		return made
	}
	now := time.Now()
	due := now.Add(MaxAge / 2)
	if !sure || changes != t.changes { // a list may have been read before it changed
		due = now.Add(UnsureAge)
	}
	t.putLocked(at, Found{made, now, due, changes})
	return made
}

// sharedLocked returns names, which are mostly those that were read last.
func (t *Tables) sharedLocked(of list, s *Names) *Names {
	last := t.latest[of]
	switch {
	case s == nil || s == last:
		return s
	case last.is(s):
		return last
	}
	t.latest[of] = s
	return s
}

func (t *Tables) putLocked(at Key, f Found) {
	t.recent.clear()
	if f.users++; f.users == 1 {
		t.names += len(f.owners)
	}
	if former, ok := t.of.Peek(at); ok {
		t.leftLocked(former.Table)
	}
	t.of.Add(at, f)
	for t.names > t.most && t.of.Len() > 1 {
		t.of.RemoveOldest()
	}
}

// leftLocked is told that a client has a table no more.
func (t *Tables) leftLocked(left *Table) {
	if left.users--; left.users == 0 {
		t.names -= len(left.owners)
	}
}
