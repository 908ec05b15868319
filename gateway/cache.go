package gateway

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// entryOverhead is what an entry takes beside its bytes.
	entryOverhead = 512
	// maxShare is the part of the cache, as a divisor, that one result may take:
	// a huge one must not drive out all others.
	maxShare = 8
)

// A cache keeps public results of all servers, each for as long as its hint
// says, bounded in number and bytes. Whoever hears of a change calls evict before
// anybody is told of it. Safe for concurrent use; the methods do nothing on nil.
//
// It has no timers: what has expired is taken out when it is asked for, or as
// the least recently used.
type cache struct {
	metrics    Metrics // read-only, as the next three
	maxEntries int
	maxBytes   int
	account    *budget.Account

	// mu guards the fields below and what shelves hold. It is held for map work
	// only.
	mu      sync.Mutex
	entries *simplelru.LRU[cacheKey, *entry]
	leaders map[cacheKey]*load // loads that others may wait for
	shelves map[string]*shelf  // by scope; none is empty
	bytes   int
	closed  bool
}

// A shelf is what the cache holds, or is about to, of one scope.
type shelf struct {
	entries map[*entry]struct{}
	loads   map[*load]struct{}
}

// An entry is one result. Its bytes are shared by everybody who is served it:
// nobody may change them.
type entry struct {
	key     cacheKey
	server  string
	result  mcp.Result // a template without release
	expires time.Time
	size    int
}

// A load is one request for a result that may be kept, on its way upstream.
type load struct {
	key    cacheKey
	server string
	done   chan struct{} // closed when it has ended

	// stale says that a change came meanwhile: the result must not be kept. It is
	// guarded by cache.mu.
	stale bool
	// alone says that who waited had better ask without waiting again. It is
	// written before done is closed, read-only after.
	alone bool
}

// cacheFor returns a cache, or nil if no server has results to keep.
func cacheFor(o Options, b *budget.Budget) (*cache, error) {
	wanted := false
	for _, so := range o.Servers {
		for _, method := range so.Keep {
			if !spec.Cacheable(method) || method == spec.MethodDiscover {
				return nil, fmt.Errorf("server %s: results of %s can't be kept", so.Name, method)
			}
			wanted = true
		}
	}
	if !wanted {
		return nil, nil
	}
	return newCache(o, b)
}

func newCache(o Options, b *budget.Budget) (*cache, error) {
	// The LRU never evicts by itself: one more would fit.
	entries, err := simplelru.NewLRU[cacheKey, *entry](o.CacheEntries+1, nil)
	if err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	c := &cache{
		metrics: o.Metrics, maxEntries: o.CacheEntries, maxBytes: o.CacheBytes, account: b.Account(cacheOwner),
		entries: entries, leaders: make(map[cacheKey]*load), shelves: make(map[string]*shelf),
	}
	b.OnShort(c.makeRoom)
	return c, nil
}

// look returns a fresh result for key. If there is none it returns a load: one
// on its way that the caller may wait for, or, if lead is true, the caller's own,
// which ends with leave. With alone set it is always the caller's own.
func (c *cache) look(server string, key cacheKey, alone bool) (res *mcp.Result, l *load, lead bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries.Get(key); ok {
		if res = e.serve(time.Now()); res != nil {
			return res, nil, false
		}
		c.removeLocked(e, "expired")
	}
	if l = c.leaders[key]; l != nil && !alone {
		return nil, l, false
	}
	return nil, c.loadLocked(server, key), true
}

// loadLocked begins a load. After close it is one that nobody looks after.
func (c *cache) loadLocked(server string, key cacheKey) *load {
	l := &load{key: key, server: server, done: make(chan struct{}), stale: c.closed}
	if c.closed {
		return l
	}
	c.shelfLocked(key.scope).loads[l] = struct{}{}
	// A read may ask its client something, and then take as long as a person.
	if key.method != spec.MethodResourcesRead && c.leaders[key] == nil {
		c.leaders[key] = l
	}
	return l
}

// keep takes a copy of a load's result, unless something forbids it.
func (c *cache) keep(l *load, res *mcp.Result) {
	size := entryOverhead + l.key.size() + len(res.Body) + len(res.Extra) + len(res.ServerInfo)
	ttl := time.Duration(res.Cache.TTL) * time.Millisecond
	switch {
	case !res.Cache.Public || ttl <= 0 || !wire.IsObject(res.Body):
		return
	case res.Era == spec.Modern:
		return // its hints stand in the body, where nobody counts them down
	case size > c.maxBytes/maxShare:
		return
	}
	if !c.account.Take(int64(size)) { // before the lock, which makeRoom takes
		return
	}
	e := &entry{key: l.key, server: l.server, size: size, expires: time.Now().Add(ttl), result: mcp.Result{
		Body: bytes.Clone(res.Body), Extra: bytes.Clone(res.Extra), ServerInfo: bytes.Clone(res.ServerInfo),
		Era: res.Era, Cache: res.Cache,
	}}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.stale {
		c.account.Give(int64(size))
		return
	}
	c.addLocked(e)
}

// makeRoom gives n bytes of the budget back by taking out the least recently used
// results, or none if that is not enough: what is kept is a comfort, and goes before
// anything is refused.
func (c *cache) makeRoom(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if int64(c.bytes) < n {
		return false
	}
	for end := int64(c.bytes) - n; int64(c.bytes) > end; {
		_, oldest, _ := c.entries.GetOldest()
		c.removeLocked(oldest, "memory")
	}
	return true
}

func (c *cache) addLocked(e *entry) {
	if before, ok := c.entries.Peek(e.key); ok {
		c.removeLocked(before, "replaced")
	}
	c.entries.Add(e.key, e)
	c.shelfLocked(e.key.scope).entries[e] = struct{}{}
	c.countLocked(e.server, e.size)
	for c.entries.Len() > c.maxEntries || c.bytes > c.maxBytes {
		_, oldest, _ := c.entries.GetOldest()
		c.removeLocked(oldest, "full")
	}
}

// leave ends a load, kept or not. answered says that the server has said what it
// has to say: a result that is not kept will not be kept the next time either,
// unless a change was the reason.
func (c *cache) leave(l *load, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.alone = answered && !l.stale
	close(l.done)
	c.unleadLocked(l)
	if s := c.shelves[l.key.scope]; s != nil {
		delete(s.loads, l)
		c.tidyLocked(l.key.scope, s)
	}
}

// evict takes out what a change concerns, and sees to it that results which are
// on their way are not kept. It looks at all that is kept of the scope: pages of
// lists, and reads where the configuration asks for them.
//
// Spec: 2026-07-28, server/utilities/caching, Interaction with Notifications.
func (c *cache) evict(ev fanout.Event) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shelves[ev.Topic.Scope]
	if s == nil {
		return
	}
	for l := range s.loads {
		if l.key.affectedBy(ev) {
			l.stale = true
			c.unleadLocked(l)
		}
	}
	for e := range s.entries {
		if e.key.affectedBy(ev) {
			c.removeLocked(e, "changed")
		}
	}
}

// close empties the cache for good: nobody tells of changes any more.
func (c *cache) close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, s := range c.shelves {
		c.clearLocked(s, "closed")
	}
}

// forget takes out all of a server, and keeps nothing of what is on its way: it is
// another server than it was.
func (c *cache) forget(server string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for scope, s := range c.shelves {
		if serverOf(scope) == server {
			c.clearLocked(s, "changed")
		}
	}
}

func (c *cache) clearLocked(s *shelf, why string) {
	for l := range s.loads {
		l.stale = true
		c.unleadLocked(l)
	}
	for e := range s.entries {
		c.removeLocked(e, why)
	}
}

// CacheSnapshot tells how full the cache is.
type CacheSnapshot struct {
	Entries int `json:"entries"`
	Bytes   int `json:"bytes"`
}

func (c *cache) snapshot() CacheSnapshot {
	if c == nil {
		return CacheSnapshot{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheSnapshot{Entries: c.entries.Len(), Bytes: c.bytes}
}

func (c *cache) removeLocked(e *entry, why string) {
	c.entries.Remove(e.key)
	c.countLocked(e.server, -e.size)
	c.account.Give(int64(e.size))
	s := c.shelves[e.key.scope]
	delete(s.entries, e)
	c.tidyLocked(e.key.scope, s)
	c.metrics.CacheEvicted(e.server, why)
}

func (c *cache) countLocked(server string, delta int) {
	c.bytes += delta
	c.metrics.CacheBytes(server, delta)
}

// unleadLocked keeps others from waiting for l.
func (c *cache) unleadLocked(l *load) {
	if c.leaders[l.key] == l {
		delete(c.leaders, l.key)
	}
}

func (c *cache) shelfLocked(scope string) *shelf {
	s := c.shelves[scope]
	if s == nil {
		s = &shelf{entries: make(map[*entry]struct{}), loads: make(map[*load]struct{})}
		c.shelves[scope] = s
	}
	return s
}

func (c *cache) tidyLocked(scope string, s *shelf) {
	if len(s.entries) == 0 && len(s.loads) == 0 {
		delete(c.shelves, scope)
	}
}

// serve returns the result with the time that is left of it, or nil if none is.
func (e *entry) serve(now time.Time) *mcp.Result {
	left := e.expires.Sub(now).Milliseconds()
	if left <= 0 {
		return nil
	}
	res := e.result
	res.Cache.TTL = left
	return &res
}
