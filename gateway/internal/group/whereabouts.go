package group

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	// maxHanded bounds the URIs of which is remembered who has handed them out.
	maxHanded = 1 << 15
	// maxListed bounds the names of one list that are remembered. Of a longer one it is not
	// known what it has. maxTemplates bounds its templates.
	maxListed    = 1 << 16
	maxTemplates = 256
	// maxLists bounds the lists of which something is remembered, and maxListBytes what is.
	maxLists     = 1 << 12
	maxListBytes = 16 << 20
	// freshFor is how long a list is not read again for what it does not have.
	freshFor = 30 * time.Second
)

// A whereabouts remembers where members' lists and results had which URIs, and which tools that
// apps call, to know whom to ask. It has digests of names, gives access to nothing, and forgets
// what was used least recently. It is safe for concurrent use.
type whereabouts struct {
	seed   maphash.Seed
	handed *lru.Cache[uint64, string] // members' names, by profile and URI

	// mu guards the fields below.
	mu      sync.Mutex
	lists   *simplelru.LRU[knownKey, listed]
	size    int                        // of lists, in bytes
	reading map[knownKey]chan struct{} // lists that are being read; closed when that has ended
}

// A knownKey is a list of a member as a client sees it.
type knownKey struct {
	scope     string
	principal mcp.Principal // clients that see different things may share a profile
	member    string
	method    string
}

// A listed is what is remembered of a list.
type listed struct {
	found
	known   bool      // it was read; false also if it was too long
	changed bool      // the member has told a change since then
	at      time.Time // when it was read, or could not be
}

// A found is what a list has that is remembered. It is immutable.
type found struct {
	names     []uint64 // digests, sorted: of URIs, or of names of tools that apps call
	templates []string // of URIs
}

func (f *found) size() int {
	size := 8 * len(f.names)
	for _, t := range f.templates {
		size += 16 + len(t)
	}
	return size
}

// and returns what two pages have.
func (f found) and(other found) found {
	switch {
	case len(other.names)+len(other.templates) == 0:
		return f
	case len(f.names)+len(f.templates) == 0:
		return other
	}
	both := found{slices.Concat(f.names, other.names), slices.Concat(f.templates, other.templates)}
	slices.Sort(both.names)
	return both
}

func newWhereabouts() (*whereabouts, error) {
	m := &whereabouts{seed: maphash.MakeSeed(), reading: make(map[knownKey]chan struct{})}
	var err error
	if m.handed, err = lru.New[uint64, string](maxHanded); err != nil {
		return nil, err
	}
	m.lists, err = simplelru.NewLRU(maxLists, func(_ knownKey, l listed) { m.size -= l.size() })
	return m, err
}

func knownAt(p *mcp.Profile, member, method string) knownKey {
	return knownKey{p.Scope, p.Share.Principal, member, method}
}

// digest stands for a name of a list, or for a URI of a profile.
func (m *whereabouts) digest(scope, text string) uint64 {
	var h maphash.Hash
	h.SetSeed(m.seed)
	_, _ = h.WriteString(scope) // it never fails
	_ = h.WriteByte(0)
	_, _ = h.WriteString(text)
	return h.Sum64()
}

// handOut remembers that a member has handed out a URI to a profile.
func (m *whereabouts) handOut(p *mcp.Profile, member, uri string) {
	m.handed.Add(m.digest(p.Scope, uri), member)
}

// handedBy returns the member that was the last to hand out a URI to a profile; empty if none is
// known.
func (m *whereabouts) handedBy(p *mcp.Profile, uri string) string {
	member, _ := m.handed.Get(m.digest(p.Scope, uri))
	return member
}

// get returns what is remembered of a list: the zero listed if nothing is.
func (m *whereabouts) get(k knownKey) listed {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, _ := m.lists.Get(k)
	return l
}

// has reports whether a list has a name.
func (m *whereabouts) has(l *listed, name string) bool {
	_, has := slices.BinarySearch(l.names, m.digest("", name))
	return has
}

// set remembers a list that was read.
func (m *whereabouts) set(k knownKey, f found) {
	l := listed{found: f, known: true, at: time.Now()}
	if len(f.names) > maxListed || len(f.templates) > maxTemplates {
		l.found, l.known = found{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setLocked(k, l)
}

func (m *whereabouts) setLocked(k knownKey, l listed) {
	m.lists.Remove(k) // of which the size is taken
	m.lists.Add(k, l)
	for m.size += l.size(); m.size > maxListBytes; {
		if _, _, ok := m.lists.RemoveOldest(); !ok {
			return
		}
	}
}

// isDue reports whether a list is to be read, because it is not known or may have changed.
func (m *whereabouts) isDue(k knownKey) bool {
	l := m.get(k)
	return time.Since(l.at) >= freshFor
}

// outdate has a list be read again before it is relied on, and reports whether it was read long
// enough ago that it may say something else now.
func (m *whereabouts) outdate(k knownKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.lists.Get(k)
	if !ok || time.Since(l.at) < freshFor {
		return false
	}
	l.names, l.known = nil, false
	m.setLocked(k, l)
	return true
}

// change has the lists of a profile read again before they are relied on.
func (m *whereabouts) change(scope string, methods ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
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
func (m *whereabouts) begin(k knownKey) (wait <-chan struct{}, due bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l, ok := m.lists.Get(k); ok && time.Since(l.at) < freshFor {
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
func (m *whereabouts) end(k knownKey, missed bool) {
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
