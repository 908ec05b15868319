package index

import (
	"hash/maphash"
	"math/bits"
)

// DefaultShards is the number of independently locked parts of an [Index] unless Options
// sets another. It is high enough that a few dozen CPUs rarely contend for one lock, and
// low enough that Prune stays cheap for a subscriber of one key.
const DefaultShards = 64

// maxShards bounds Options.Shards, because Prune visits every shard.
const maxShards = 1 << 16

// Options configures an [Index]. The zero value is ready to use.
type Options struct {
	// Shards is the number of independently locked parts, rounded up to a power
	// of two. Zero or less means DefaultShards; more than 65,536 means 65,536.
	Shards int
}

// An Index is a set of pairs of a key and a subscriber, with a look-up from either side.
// All methods may be called concurrently.
//
// Subscribe, Unsubscribe, Has and Contains take constant time, whatever the number of
// subscribers per key and of keys per subscriber. The index keeps the key of the first
// Subscribe, including its strings, until the key's last subscriber is removed. Clone a
// string that is part of a larger buffer before you pass it.
//
// Keys and subscribers must equal themselves (a floating-point NaN does not).
type Index[K, S comparable] struct {
	// Set by New, read-only after.
	seed   maphash.Seed
	mask   uint64
	shards []shard[K, S]
}

// New returns an empty Index.
func New[K, S comparable](opts Options) *Index[K, S] {
	n := opts.Shards
	if n <= 0 {
		n = DefaultShards
	}
	n = 1 << bits.Len(uint(min(n, maxShards)-1))
	return &Index[K, S]{
		seed:   maphash.MakeSeed(),
		mask:   uint64(n - 1),
		shards: make([]shard[K, S], n),
	}
}

// Subscribe adds the pair of key and sub, and reports whether it is the first of its key.
// If the pair exists, Subscribe changes nothing and reports false. The owner of sub can
// call Contains first to learn whether the pair exists.
func (x *Index[K, S]) Subscribe(key K, sub S) (first bool) {
	sh := x.shard(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.addLocked(key, sub)
}

// Unsubscribe removes the pair of key and sub, and reports whether it was the last of its
// key. If there is no such pair, Unsubscribe changes nothing and reports false.
func (x *Index[K, S]) Unsubscribe(key K, sub S) (last bool) {
	sh := x.shard(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.removeLocked(key, sub)
}

// Released is a key from which Prune removed a subscriber.
type Released[K comparable] struct {
	Key  K
	Last bool // the subscriber was the key's last
}

// Prune removes every pair of sub and returns its keys in no particular order. It takes
// time in proportion to the number of these keys and of shards, independently of the size
// of the index.
//
// Prune is atomic for each key, not across keys: the pair of a concurrent Subscribe with
// the same subscriber may survive. To remove all pairs, the subscriber's owner waits
// until its last Subscribe has returned, and then calls Prune.
func (x *Index[K, S]) Prune(sub S) []Released[K] {
	var released []Released[K]
	for i := range x.shards {
		released = x.shards[i].prune(released, sub)
	}
	return released
}

// AppendSubscribers appends the subscribers of key to dst, in no particular
// order, and returns the extended slice. It allocates only to grow dst.
func (x *Index[K, S]) AppendSubscribers(dst []S, key K) []S {
	sh := x.shard(key)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return append(dst, sh.keys[key].subs...)
}

// Has reports whether key has any subscriber.
func (x *Index[K, S]) Has(key K) bool {
	sh := x.shard(key)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	_, ok := sh.keys[key]
	return ok
}

// Len returns the number of keys that have a subscriber, and the number of pairs. It
// visits every shard, one at a time, but not the pairs.
func (x *Index[K, S]) Len() (keys, pairs int) {
	for i := range x.shards {
		sh := &x.shards[i]
		sh.mu.RLock()
		keys += len(sh.keys)
		pairs += len(sh.links)
		sh.mu.RUnlock()
	}
	return keys, pairs
}

// Snapshot returns a copy of the index for display and tests: each key that has
// subscribers, with its subscribers in no particular order. Snapshot copies one shard
// after the other, so the copy is consistent for each key, but not across keys.
func (x *Index[K, S]) Snapshot() map[K][]S {
	keys, _ := x.Len()
	all := make(map[K][]S, keys)
	for i := range x.shards {
		x.shards[i].snapshot(all)
	}
	return all
}

// Walk calls visit for each key that has subscribers, in no particular order. subs is valid
// during the call only. visit must be quick, and must not use the index: those who change
// the key's shard wait. Like Snapshot it visits one shard after the other.
func (x *Index[K, S]) Walk(visit func(key K, subs []S)) {
	for i := range x.shards {
		x.shards[i].walk(visit)
	}
}

// shard returns the shard that holds every pair of key.
func (x *Index[K, S]) shard(key K) *shard[K, S] {
	return &x.shards[maphash.Comparable(x.seed, key)&x.mask]
}
