package cache

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
	// entryOverhead is the memory of an entry besides its key and result, in bytes.
	entryOverhead = 512
	// maxFraction is the part of the cache, as a divisor, that one result may use, so that
	// a huge result does not evict all others.
	maxFraction = 8
)

// Options configure a Cache.
type Options struct {
	Entries int            // the largest number of results; required
	Bytes   int            // the largest number of bytes of results; required
	Memory  *budget.Budget // the budget for the bytes; required
	Metrics mcp.Metrics    // nil counts nothing
}

// A Cache stores public results of all servers, each for as long as its hint says, bounded
// in number and bytes. Its methods are safe for concurrent use, and do nothing on nil.
//
// It has no timers: an expired result is removed when it is looked up, or when it is the
// least recently used.
type Cache struct {
	metrics mcp.Metrics // read-only, as the next one
	account *budget.Account
	fresh   func() bool // see Heed; nil for always

	// mu guards the fields below and the scopes. It is held for map work only.
	mu       sync.Mutex
	most     bounds
	entries  *simplelru.LRU[key, *entry]
	joinable map[key]*fetch           // fetches that others may wait for
	scopes   map[string]*scopeEntries // by scope; none is empty
	bytes    int
	closed   bool
}

// bounds are the most that a Cache keeps.
type bounds struct{ entries, bytes int }

// scopeEntries are the results and the fetches of one scope.
type scopeEntries struct {
	server  string
	entries map[*entry]struct{}
	fetches map[*fetch]struct{}
}

// An entry is one result. All requests that it serves share its bytes, which must not be
// changed.
type entry struct {
	key     key
	server  string
	result  mcp.Result // a template without release
	expires time.Time
	size    int
}

// A fetch is a request upstream for a result that may be cached.
type fetch struct {
	key    key
	server string
	done   chan struct{} // closed when it has ended

	// stale says that a change arrived in the meantime, so that the result must not be
	// cached. It is guarded by Cache.mu.
	stale bool
	// alone says that the requests that waited should each ask the server. It is written
	// before done is closed, and read-only after.
	alone bool
}

// owner is the type of the key of the cache's account.
type owner struct{}

// New returns an empty Cache. Call it before memory is taken from o.Memory.
func New(o Options) (*Cache, error) {
	// The LRU never evicts by itself: one more would fit.
	entries, err := simplelru.NewLRU[key, *entry](o.Entries+1, nil)
	if err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	c := &Cache{
		most: bounds{o.Entries, o.Bytes}, metrics: o.Metrics, account: o.Memory.Account(owner{}),
		entries: entries, joinable: make(map[key]*fetch), scopes: make(map[string]*scopeEntries),
	}
	if c.metrics == nil {
		c.metrics = mcp.NoMetrics{}
	}
	o.Memory.OnShort(c.makeRoom)
	return c, nil
}

// Bound sets the most results, and the most bytes of results. What is too much is removed.
func (c *Cache) Bound(entries, bytes int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = bounds{entries, bytes}
	c.makeFitLocked()
	c.entries.Resize(entries + 1)
}

// Heed has results served only while fresh reports true. It must be quick, and is called
// without a lock. Call Heed before the first request.
func (c *Cache) Heed(fresh func() bool) { c.fresh = fresh }

// Clear removes all results, and prevents that those in a fetch are cached, because changes
// may have been missed.
func (c *Cache) Clear() { c.evictAll("changed", func(*scopeEntries) bool { return true }) }

// Keeps reports whether results of a method can be cached.
func Keeps(method string) bool {
	return spec.Cacheable(method) && spec.Defined(method) && method != spec.MethodDiscover
}

// lookup returns a fresh result for k. If there is none, it returns a fetch: one that the
// caller may wait for or, if own is true, one that the caller has to carry out and finish.
// If alone is set, it is always the caller's own.
func (c *Cache) lookup(server string, k key, alone bool) (res *mcp.Result, f *fetch, own bool) {
	if c.fresh != nil && !c.fresh() {
		return nil, c.unkept(server, k), true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries.Get(k); ok {
		if res = e.serve(time.Now()); res != nil {
			return res, nil, false
		}
		c.removeLocked(e, "expired")
	}
	if f = c.joinable[k]; f != nil && !alone {
		return nil, f, false
	}
	return nil, c.fetchLocked(server, k), true
}

// unkept begins a fetch whose result is not cached.
func (c *Cache) unkept(server string, k key) *fetch {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &fetch{key: k, server: server, done: make(chan struct{}), stale: true}
	c.scopeLocked(k.scope, server).fetches[f] = struct{}{}
	return f
}

// fetchLocked begins a fetch. After Close its result is not cached.
func (c *Cache) fetchLocked(server string, k key) *fetch {
	f := &fetch{key: k, server: server, done: make(chan struct{}), stale: c.closed}
	if c.closed {
		return f
	}
	c.scopeLocked(k.scope, server).fetches[f] = struct{}{}
	// A read may request input from its client, and then take long.
	if k.method != spec.MethodResourcesRead && c.joinable[k] == nil {
		c.joinable[k] = f
	}
	return f
}

// store caches a copy of a fetch's result if that is allowed.
func (c *Cache) store(f *fetch, res *mcp.Result) {
	size := entryOverhead + f.key.size() + len(res.Body) + len(res.Extra) + len(res.ServerInfo)
	ttl := time.Duration(res.Cache.TTL) * time.Millisecond
	switch {
	case !res.Cache.Public || ttl <= 0 || !wire.IsObject(res.Body):
		return
	case res.Era == spec.Modern:
		return // its hints are in the body, where the remaining time can't be updated
	case size > c.bounds().bytes/maxFraction:
		return
	}
	if !c.account.Take(int64(size)) { // before the lock, which makeRoom takes
		return
	}
	e := &entry{key: f.key, server: f.server, size: size, expires: time.Now().Add(ttl), result: mcp.Result{
		Body: bytes.Clone(res.Body), Extra: bytes.Clone(res.Extra), ServerInfo: bytes.Clone(res.ServerInfo),
		Era: res.Era, Cache: res.Cache,
	}}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.stale {
		c.account.Give(int64(size))
		return
	}
	c.addLocked(e)
}

func (c *Cache) bounds() bounds {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// makeRoom gives n bytes back to the budget by evicting the least recently used results,
// or evicts none if that is not enough. So the cache shrinks before a client is refused.
func (c *Cache) makeRoom(n int64) bool {
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

func (c *Cache) addLocked(e *entry) {
	if before, ok := c.entries.Peek(e.key); ok {
		c.removeLocked(before, "replaced")
	}
	c.entries.Add(e.key, e)
	c.scopeLocked(e.key.scope, e.server).entries[e] = struct{}{}
	c.countLocked(e.server, e.size)
	c.makeFitLocked()
}

// makeFitLocked removes the least recently used results as long as there are too many.
func (c *Cache) makeFitLocked() {
	for c.entries.Len() > c.most.entries || c.bytes > c.most.bytes {
		_, oldest, _ := c.entries.GetOldest()
		c.removeLocked(oldest, "full")
	}
}

// finish ends a fetch, whether its result is cached or not. answered says that the server
// has responded: a result that is not cached would not be cached the next time either,
// unless a change was the reason.
func (c *Cache) finish(f *fetch, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.alone = answered && !f.stale
	close(f.done)
	c.detachLocked(f)
	if s := c.scopes[f.key.scope]; s != nil {
		delete(s.fetches, f)
		c.pruneLocked(f.key.scope, s)
	}
}

// Evict removes the results that a change affects, and prevents that those in a fetch are
// cached. It looks at all results of the change's scope.
//
// Spec: 2026-07-28, server/utilities/caching, Interaction with Notifications.
func (c *Cache) Evict(ev fanout.Event) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.scopes[ev.Topic.Scope]; s != nil {
		c.evictLocked(s, "changed", func(k *key) bool { return k.affectedBy(ev) })
	}
}

// Close empties the cache for good, because changes are no longer reported.
func (c *Cache) Close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.evictAll("closed", func(*scopeEntries) bool { return true })
}

// Forget removes all results of a server, and prevents that those in a fetch are cached,
// because the server was replaced.
func (c *Cache) Forget(server string) {
	c.evictAll("changed", func(s *scopeEntries) bool { return s.server == server })
}

// evictAll removes all results of the scopes that are meant.
func (c *Cache) evictAll(why string, meant func(*scopeEntries) bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.scopes {
		if meant(s) {
			c.evictLocked(s, why, func(*key) bool { return true })
		}
	}
}

// evictLocked removes the results of a scope whose keys are affected.
func (c *Cache) evictLocked(s *scopeEntries, why string, affected func(*key) bool) {
	for f := range s.fetches {
		if affected(&f.key) {
			f.stale = true
			c.detachLocked(f)
		}
	}
	for e := range s.entries {
		if affected(&e.key) {
			c.removeLocked(e, why)
		}
	}
}

// A Snapshot is the size of a Cache.
type Snapshot struct{ Entries, Bytes int }

// Snapshot returns the size of the cache.
func (c *Cache) Snapshot() Snapshot {
	if c == nil {
		return Snapshot{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return Snapshot{Entries: c.entries.Len(), Bytes: c.bytes}
}

func (c *Cache) removeLocked(e *entry, why string) {
	c.entries.Remove(e.key)
	c.countLocked(e.server, -e.size)
	c.account.Give(int64(e.size))
	s := c.scopes[e.key.scope]
	delete(s.entries, e)
	c.pruneLocked(e.key.scope, s)
	c.metrics.CacheEvicted(e.server, why)
}

func (c *Cache) countLocked(server string, delta int) {
	c.bytes += delta
	c.metrics.CacheBytes(server, delta)
}

// detachLocked prevents that further requests wait for f.
func (c *Cache) detachLocked(f *fetch) {
	if c.joinable[f.key] == f {
		delete(c.joinable, f.key)
	}
}

func (c *Cache) scopeLocked(scope, server string) *scopeEntries {
	s := c.scopes[scope]
	if s == nil {
		s = &scopeEntries{server: server, entries: make(map[*entry]struct{}), fetches: make(map[*fetch]struct{})}
		c.scopes[scope] = s
	}
	return s
}

func (c *Cache) pruneLocked(scope string, s *scopeEntries) {
	if len(s.entries) == 0 && len(s.fetches) == 0 {
		delete(c.scopes, scope)
	}
}

// serve returns the result with its remaining time to live, or nil if it has expired.
func (e *entry) serve(now time.Time) *mcp.Result {
	left := e.expires.Sub(now).Milliseconds()
	if left <= 0 {
		return nil
	}
	res := e.result
	res.Cache.TTL = left
	return &res
}
