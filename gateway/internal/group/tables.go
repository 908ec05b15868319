package group

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// tableAge is how long a table is used without a new look at the lists: changes are
	// told to those alone who subscribe to them. After half of that, and after unsureAge if a
	// member's names may be others, it is used while the lists are read again.
	tableAge  = 5 * time.Minute
	unsureAge = 5 * time.Second
	// maxTables bounds the profiles and kinds with a table, and maxTableNames the names in
	// all tables; equal ones count once. Others are read again.
	maxTables     = 4096
	maxTableNames = 1 << 19
)

// contested is the owner of a name that several members have.
const contested = -1

// A tableKey is a client at the group and a kind of things with names, and for some purposes a
// member. Clients that see different things may share a profile.
type tableKey struct {
	scope     string
	principal mcp.Principal
	kind      policy.Kind
	member    int
}

// tableOf returns the key of the table for a request.
func tableOf(req *mcp.Request, k policy.Kind) tableKey {
	return tableKey{scope: req.Profile.Scope, principal: req.Principal, kind: k}
}

// A nameSet has the names of one list of a member. It is immutable, and equal ones of a member
// are mostly one.
type nameSet struct{ names map[string]struct{} }

func newNameSet(names []string) *nameSet {
	s := &nameSet{make(map[string]struct{}, len(names))}
	for _, name := range names {
		s.names[name] = struct{}{}
	}
	return s
}

func (s *nameSet) has(name string) bool {
	if s == nil {
		return false
	}
	_, ok := s.names[name]
	return ok
}

// is reports whether two sets have the same names.
func (s *nameSet) is(other *nameSet) bool {
	return s != nil && maps.Equal(s.names, other.names)
}

// A table says which member has which name, where names have no prefixes. It is immutable, but for
// users.
type table struct {
	sets   []*nameSet     // by the member's place; nil if its names are not known
	owners map[string]int // places of members, or contested
	users  int            // profiles that have it; guarded by tables.mu
}

func (t *table) has(name string) bool {
	_, ok := t.owners[name]
	return ok
}

// newTable makes a table of sets. prefer has places of members by name.
func newTable(sets []*nameSet, prefer map[string]int) *table {
	t := &table{sets: sets, owners: make(map[string]int)}
	for i, s := range sets {
		if s == nil {
			continue
		}
		for name := range s.names {
			if _, taken := t.owners[name]; taken {
				t.owners[name] = contested
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

// A profileTable is the table of one profile.
type profileTable struct {
	*table
	made time.Time
	due  time.Time // when the lists are to be read again
}

// tables has the tables of all profiles. Safe for concurrent use.
type tables struct {
	members []MemberOptions
	prefer  map[string]int
	former  *remembered
	reading gate

	// mu guards the fields below and the users of tables. It is held for map work only.
	mu      sync.Mutex
	of      *simplelru.LRU[tableKey, profileTable]
	names   int                    // in all tables
	latest  map[tableKey]*nameSet  // by kind and member: what was read last
	last    map[policy.Kind]*table // what was made last
	changes int                    // that were told
}

func newTables(o *Options, former *remembered) (*tables, error) {
	t := &tables{former: former, members: o.Members, prefer: make(map[string]int), latest: make(map[tableKey]*nameSet), last: make(map[policy.Kind]*table)}
	for name, member := range o.Prefer {
		i := slices.IndexFunc(o.Members, func(m MemberOptions) bool { return m.Name == member })
		if i < 0 {
			return nil, fmt.Errorf("prefer: %q is to be that of server %q, which is not a member; name one", name, member)
		}
		t.prefer[name] = i
	}
	var err error
	if t.of, err = simplelru.NewLRU(maxTables, func(_ tableKey, p profileTable) { t.leftLocked(p.table) }); err != nil {
		return nil, err
	}
	return t, nil
}

// find returns the table of a profile, unless it is too old, and reports whether the caller is to
// have the lists read again.
func (t *tables) find(at tableKey) (found profileTable, due, ok bool) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok = t.of.Get(at)
	if !ok || now.Sub(found.made) >= tableAge {
		return profileTable{}, false, false
	}
	if due = !now.Before(found.due); due {
		found.due = now.Add(unsureAge)
		t.of.Add(at, found) // whoever comes next need not
	}
	return found, due, true
}

// forget has the lists read again before their names are used, since one has changed.
func (t *tables) forget(scope string, k policy.Kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	for _, at := range t.of.Keys() {
		if at.scope == scope && at.kind == k {
			t.of.Remove(at)
		}
	}
}

// begin is called before lists are read for learn.
func (t *tables) begin() (changes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changes
}

// listChanged has the names of a list that has changed for a profile read again before they are
// used. Call it before the change is told.
func (b *Back) listChanged(scope string, k fanout.Kind) {
	switch k {
	case fanout.ToolsListChanged:
		b.naming.tables.forget(scope, policy.Tool)
		b.where.change(scope, spec.MethodToolsList)
	case fanout.PromptsListChanged:
		b.naming.tables.forget(scope, policy.Prompt)
	case fanout.ResourcesListChanged:
		b.where.change(scope, spec.MethodResourcesList, spec.MethodResourcesTemplates)
	}
}

// clear has all lists read again.
func (t *tables) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	t.of.Purge()
}

// learn makes the table for a request of what all members have answered, in order, since begin
// returned changes. One that is away has the names that are remembered.
func (t *tables) learn(req *mcp.Request, readings []*reading, changes int) *table {
	k, sure := readings[0].kind, true
	sets := make([]*nameSet, len(readings))
	for i, r := range readings {
		name := t.members[i].Name
		if sure = sure && r.err == nil && !r.recalled; r.err != nil {
			sets[i] = t.former.names(name, req, r.list)
			continue
		}
		sets[i] = t.set(tableKey{kind: k, member: i}, r)
		t.former.learn(name, req, r.method, sets[i])
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	made := t.last[k]
	if made == nil || !slices.Equal(made.sets, sets) {
		made = newTable(sets, t.prefer)
		t.last[k] = made
	}
	now := time.Now()
	due := now.Add(tableAge / 2)
	if !sure || changes != t.changes { // a list may have been read before it changed
		due = now.Add(unsureAge)
	}
	t.putLocked(tableOf(req, k), profileTable{made, now, due})
	return made
}

// set returns the names of a list, as a set which is mostly the one that was read last.
func (t *tables) set(at tableKey, r *reading) *nameSet {
	t.mu.Lock()
	last := t.latest[at]
	t.mu.Unlock()
	var s *nameSet
	if len(r.pages) == 1 {
		s = r.pages[0].set
	}
	if s == nil {
		s = newNameSet(r.names())
	}
	if s == last || last.is(s) {
		return last
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.latest[at] = s
	return s
}

func (t *tables) putLocked(at tableKey, p profileTable) {
	if p.users++; p.users == 1 {
		t.names += len(p.owners)
	}
	if former, ok := t.of.Peek(at); ok {
		t.leftLocked(former.table)
	}
	t.of.Add(at, p)
	for t.names > maxTableNames && t.of.Len() > 1 {
		t.of.RemoveOldest()
	}
}

// leftLocked is told that a profile has a table no more.
func (t *tables) leftLocked(left *table) {
	if left.users--; left.users == 0 {
		t.names -= len(left.owners)
	}
}

// having returns the members that have a name, quoted.
func (t *tables) having(of *table, name string) (members []string) {
	for i, s := range of.sets {
		if s.has(name) {
			members = append(members, strconv.Quote(t.members[i].Name))
		}
	}
	return members
}

// bareOwner is ownerOf for a group without prefixes.
func (b *Back) bareOwner(ctx context.Context, req *mcp.Request, k policy.Kind, name string) (m memberAt, err error) {
	if len(b.opts.Members) == 1 {
		return b.at(0)
	}
	t, err := b.tableWith(ctx, req, k, name)
	if err != nil {
		return m, err
	}
	owner, ok := t.owners[name]
	switch {
	case !ok:
		return m, b.nobodyHas(req, k, name, t)
	case owner == contested:
		return m, wire.Errorf(spec.CodeInvalidParams,
			"the %s %q of group %q is that of several servers: %s; who runs mcpbridge can say which one is preferred, rename or hide one, or use prefixes",
			k, mcp.Shorten(name), b.opts.Name, strings.Join(b.naming.tables.having(t, name), ", "))
	}
	return b.at(owner)
}

// nobodyHas returns the error for a name that no member is known to have.
func (b *Back) nobodyHas(req *mcp.Request, k policy.Kind, name string, t *table) error {
	var unread []string
	for i, s := range t.sets {
		if s == nil {
			unread = append(unread, b.opts.Members[i].Name)
		}
	}
	err := unknown(req, k, name)
	if len(unread) == 0 {
		return err
	}
	return wire.Errorf(spec.CodeInvalidParams, "%s; what these servers have is not known: %s", mcp.WireError(err).Message, strings.Join(unread, ", "))
}

// tableWith returns the table of a request's profile. If there is none, or a name is not in it,
// all lists of all members are read.
func (b *Back) tableWith(ctx context.Context, req *mcp.Request, k policy.Kind, name string) (*table, error) {
	at, all := tableOf(req, k), b.naming.tables
	if t, due, ok := all.find(at); ok && t.has(name) {
		if due {
			later := detached(b.namesReader(req, k).req)
			b.background.start(func(ctx context.Context) { _, _ = b.readTable(ctx, later, k) }) // it fails with ctx alone
		}
		return t.table, nil
	}
	before := time.Now()
	leave := all.reading.enter(ctx, at)
	defer leave()
	if t, _, ok := all.find(at); ok && (t.has(name) || t.made.After(before)) {
		return t.table, nil
	}
	return b.readTable(ctx, req, k)
}

// readTable reads all lists of all members.
func (b *Back) readTable(ctx context.Context, req *mcp.Request, k policy.Kind) (*table, error) {
	changes := b.naming.tables.begin()
	readings := b.namesReader(req, k).each(ctx, b.everywhere())
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return b.naming.tables.learn(req, readings, changes), nil
}
