package owners

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

const (
	// maxHanded bounds the URIs of which is remembered who has handed them out, as digests.
	maxHanded = 1 << 15
	// maxListed bounds the names of one list that are remembered. Of a longer one it is not
	// known what it has. maxTemplates bounds its templates.
	maxListed    = 1 << 16
	maxTemplates = 256
	// maxLists bounds the lists of which something is remembered, and maxListBytes what is.
	maxLists     = 1 << 12
	maxListBytes = 16 << 20
	// FreshFor is how long a list is not read again for what it does not have.
	FreshFor = 30 * time.Second
)

// URIs remembers where members' lists and results had which URIs, and which tools that apps call,
// to know whom to ask. It has digests of names, gives access to nothing, and forgets what was used
// least recently. It is safe for concurrent use.
//
// Members go by name, since the places of a group may be others after a reload: members, in its
// methods, are the names of all members in the order of the group, and what is returned are places
// in that.
type URIs struct {
	seed   maphash.Seed
	handed *lru.Cache[uint64, string] // members' names, by profile and URI

	// mu guards the fields below.
	mu      sync.Mutex
	lists   *simplelru.LRU[knownKey, listed]
	size    int                                // of lists, in bytes
	reading map[knownKey]chan struct{}         // lists that are being read; closed when that has ended
	told    *simplelru.LRU[toldKey, time.Time] // when a change was told last
}

// A toldKey is what a change is of: the lists that a profile has of all members.
type toldKey struct{ scope, method string }

// A knownKey is a list of a member as a client sees it.
type knownKey struct {
	scope     string
	principal mcp.Principal // clients that see different things may share a profile
	member    string
	method    string
}

// A listed is what is remembered of a list.
type listed struct {
	Mentions
	known   bool      // it was read; false also if it was too long
	changed bool      // the member has told a change since then
	at      time.Time // when it was read, or could not be
}

// Mentions is what a list, or a page of it, has that is remembered. It is immutable, and its zero
// value has nothing.
type Mentions struct {
	// Apps are the URIs of apps, which a list of tools hands out.
	Apps []string

	names     []uint64 // digests, sorted: of URIs, or of names of tools that apps call
	templates []string // of URIs
}

func (f *Mentions) size() int {
	size := 8 * len(f.names)
	for _, t := range f.templates {
		size += 16 + len(t)
	}
	return size
}

// and returns what two pages have.
func (f Mentions) and(other Mentions) Mentions {
	switch {
	case len(other.names)+len(other.templates) == 0:
		return f
	case len(f.names)+len(f.templates) == 0:
		return other
	}
	both := Mentions{names: slices.Concat(f.names, other.names), templates: slices.Concat(f.templates, other.templates)}
	slices.Sort(both.names)
	return both
}

// NewURIs returns URIs that knows nothing.
func NewURIs() (*URIs, error) {
	m := &URIs{seed: maphash.MakeSeed(), reading: make(map[knownKey]chan struct{})}
	var err error
	if m.handed, err = lru.New[uint64, string](maxHanded); err != nil {
		return nil, err
	}
	if m.told, err = simplelru.NewLRU[toldKey, time.Time](maxLists, nil); err != nil {
		return nil, err
	}
	m.lists, err = simplelru.NewLRU(maxLists, func(_ knownKey, l listed) { m.size -= l.size() })
	return m, err
}

func knownAt(p *mcp.Profile, member, method string) knownKey {
	return knownKey{p.Scope, p.Share.Principal, member, method}
}

// digest stands for a name of a list, or for a URI of a profile.
func (m *URIs) digest(scope, text string) uint64 {
	var h maphash.Hash
	h.SetSeed(m.seed)
	_, _ = h.WriteString(scope) // it never fails
	_ = h.WriteByte(0)
	_, _ = h.WriteString(text)
	return h.Sum64()
}

// HandOut remembers that a member has handed out a URI to a profile.
func (m *URIs) HandOut(p *mcp.Profile, member, uri string) {
	if uri != "" {
		m.handed.Add(m.digest(p.Scope, uri), member)
	}
}

// HandedBy returns the member that was the last to hand out a URI to a profile; -1 if none is
// known.
func (m *URIs) HandedBy(p *mcp.Profile, members []string, uri string) int {
	member, _ := m.handed.Get(m.digest(p.Scope, uri))
	return slices.Index(members, member)
}

// Lister returns the first member that is known to list a URI or, if it may be one, a template; -1
// if none is. It is not sure if another member may be the first one.
func (m *URIs) Lister(p *mcp.Profile, members []string, uri string, isTemplate bool) (place int, sure bool) {
	sure = true
	for i, name := range members {
		l := m.get(knownAt(p, name, spec.MethodResourcesList))
		if m.has(&l, uri) {
			return i, sure && !l.changed
		}
		t := m.get(knownAt(p, name, spec.MethodResourcesTemplates))
		if isTemplate && slices.Contains(t.templates, uri) {
			return i, sure && !t.changed
		}
		sure = sure && l.known && !l.changed && (t.known && !t.changed || !isTemplate)
	}
	return -1, false
}

// Matching returns the members that are known to have a template for a URI.
func (m *URIs) Matching(p *mcp.Profile, members []string, uri string) (places []int) {
	for i, name := range members {
		l := m.get(knownAt(p, name, spec.MethodResourcesTemplates))
		if slices.ContainsFunc(l.templates, func(t string) bool { return matches(t, uri) }) {
			places = append(places, i)
		}
	}
	return places
}

// Holders returns those members that have a URI, as far as is known: the one that lists it, or else
// the one that has handed it out, or else all that have a template for it.
func (m *URIs) Holders(p *mcp.Profile, members []string, uri string) []int {
	if i, _ := m.Lister(p, members, uri, false); i >= 0 {
		return []int{i}
	}
	if i := m.HandedBy(p, members, uri); i >= 0 {
		return []int{i}
	}
	return m.Matching(p, members, uri)
}

// ForApps returns the members that are known to have a tool of that own name for apps.
func (m *URIs) ForApps(p *mcp.Profile, members []string, tool string) (places []int) {
	for i, name := range members {
		if l := m.get(knownAt(p, name, spec.MethodToolsList)); m.has(&l, tool) {
			places = append(places, i)
		}
	}
	return places
}

// Lists are the lists of a method of all members, as far as they are known to a profile at a time.
type Lists struct {
	uris *URIs
	of   []listed
}

// Lists returns what is known of the lists of a method.
func (m *URIs) Lists(p *mcp.Profile, members []string, method string) *Lists {
	all := &Lists{uris: m}
	for _, name := range members {
		all.of = append(all.of, m.get(knownAt(p, name, method)))
	}
	return all
}

// First returns the first member that is known to list a URI or a template, or place if none of those
// before it is.
func (all *Lists) First(place int, name string) int {
	for i := range all.of[:place] {
		if l := &all.of[i]; all.uris.has(l, name) || slices.Contains(l.templates, name) {
			return i
		}
	}
	return place
}

// Knows reports whether a list of a member was read.
func (m *URIs) Knows(p *mcp.Profile, member, method string) bool {
	return m.get(knownAt(p, member, method)).known
}

// get returns what is remembered of a list: the zero listed if nothing is.
func (m *URIs) get(k knownKey) listed {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, _ := m.lists.Get(k)
	return l
}

// has reports whether a list has a name.
func (m *URIs) has(l *listed, name string) bool {
	_, has := slices.BinarySearch(l.names, m.digest("", name))
	return has
}

// Listed remembers a list of a member that a profile has read, of all of whose pages this is what
// they mention. If it is too long for that, it returns how many may be in it; else 0. begun is when the
// member was asked: what has changed since is read again.
func (m *URIs) Listed(p *mcp.Profile, member, method string, begun time.Time, pages ...Mentions) (limit int) {
	var all Mentions
	for _, page := range pages {
		all = all.and(page)
	}
	all.Apps = nil
	return m.set(knownAt(p, member, method), all, begun)
}

func (m *URIs) set(k knownKey, f Mentions, begun time.Time) (limit int) {
	switch {
	case len(f.names) > maxListed:
		limit = maxListed
	case len(f.templates) > maxTemplates:
		limit = maxTemplates
	}
	l := listed{Mentions: f, known: true, at: time.Now()}
	if limit > 0 {
		l.Mentions, l.known = Mentions{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.told.Get(toldKey{k.scope, k.method}); ok && at.After(begun) {
		l.changed, l.at = true, time.Time{}
	}
	m.setLocked(k, l)
	return limit
}

func (m *URIs) setLocked(k knownKey, l listed) {
	m.lists.Remove(k) // of which the size is taken
	m.lists.Add(k, l)
	for m.size += l.size(); m.size > maxListBytes; {
		if _, _, ok := m.lists.RemoveOldest(); !ok {
			return
		}
	}
}

// isDue reports whether a list is to be read, because it is not known or may have changed.
func (m *URIs) isDue(k knownKey) bool {
	l := m.get(k)
	return time.Since(l.at) >= FreshFor
}

// Outdate has a list be read again before it is relied on, and reports whether it was read long
// enough ago that it may say something else now.
func (m *URIs) Outdate(p *mcp.Profile, member, method string) bool {
	k := knownAt(p, member, method)
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.lists.Get(k)
	if !ok || time.Since(l.at) < FreshFor {
		return false
	}
	l.names, l.known = nil, false
	m.setLocked(k, l)
	return true
}

// Change has the lists of a profile read again before they are relied on.
func (m *URIs) Change(scope string, methods ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, method := range methods {
		m.told.Add(toldKey{scope, method}, time.Now())
	}
	for _, k := range m.lists.Keys() {
		if k.scope != scope || !slices.Contains(methods, k.method) {
			continue
		}
		l, _ := m.lists.Peek(k)
		l.changed, l.at = true, time.Time{}
		m.lists.Add(k, l)
	}
}

// begin says how a list comes to be known. With false it need not be read now. Otherwise the
// caller reads it, and then calls end; or waits for another one that does.
func (m *URIs) begin(k knownKey) (wait <-chan struct{}, due bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l, ok := m.lists.Get(k); ok && time.Since(l.at) < FreshFor {
		return nil, false
	}
	if other := m.reading[k]; other != nil {
		return other, true
	}
	m.reading[k] = make(chan struct{})
	return nil, true
}

// end is called by who was to read a list. missed says that it could not be read, so that what
// was known of it stays, and nobody tries again at once.
func (m *URIs) end(k knownKey, missed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.reading[k])
	delete(m.reading, k)
	if missed {
		l, _ := m.lists.Get(k)
		l.at = time.Now()
		m.setLocked(k, l)
	}
}
