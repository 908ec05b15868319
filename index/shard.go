package index

import (
	"slices"
	"sync"
)

const (
	// none marks the end of a chain of links. No key has this number.
	none = ^uint32(0)

	// keepNumbers is the largest number of keys or subscribers that an empty shard may
	// have had at once and still keep its storage. Go maps never shrink.
	keepNumbers = 1024

	// keepList is the capacity up to which a key's list is never shrunk.
	keepList = 16
)

// A shard holds all pairs of the keys that hash to it. Both directions of a
// pair are in the same shard and change under the same lock, so that no race
// can leave one of them stale.
//
// The subscribers of a key are a list, so the look-up for an event is one map access and
// one copy. The keys of a subscriber are a doubly linked chain. The map links has one
// entry per pair: the subscriber's position in the key's list, and the previous and next
// key in the subscriber's chain. Removing a pair therefore needs no search in either
// direction. Besides the list, a pair costs one entry of a map without pointers, which
// the garbage collector doesn't scan.
type shard[K, S comparable] struct {
	// mu guards the fields below, and is held for map operations only. A goroutine that
	// holds it takes no other lock. The maps are nil until the first use.
	mu    sync.RWMutex
	keys  map[K]keyEntry[S]
	subs  map[S]subEntry
	links map[pair]link

	names      []K // by key number; the zero K where the number is free
	keyNumbers numbers
	subNumbers numbers
}

// A keyEntry holds the subscribers of a key.
type keyEntry[S comparable] struct {
	subs   []S // never empty
	number uint32
}

// A subEntry holds where the chain of a subscriber begins.
type subEntry struct {
	number uint32
	head   uint32 // the key at which the chain begins, never none
}

// A pair names a key and a subscriber by their numbers in the shard.
type pair struct{ key, sub uint32 }

// A link holds the positions of a pair in the key's list and in the subscriber's chain.
type link struct {
	at         uint32 // position in the key's list
	prev, next uint32 // neighbouring keys in the subscriber's chain, or none
}

// addLocked adds a pair and reports whether it is the first of its key.
func (s *shard[K, S]) addLocked(key K, sub S) (first bool) {
	a, known := s.keys[key]
	h, ok := s.subs[sub]
	if known && ok && s.linkedLocked(pair{a.number, h.number}) {
		return false
	}
	if !known {
		a.number = s.nameLocked(key)
	}
	if !ok {
		h = subEntry{number: s.subNumbers.take(), head: none}
	}
	s.links[pair{a.number, h.number}] = link{at: uint32(len(a.subs)), prev: none, next: h.head}
	s.relinkLocked(pair{h.head, h.number}, func(l *link) { l.prev = a.number })
	h.head = a.number
	a.subs = append(a.subs, sub)
	s.subs[sub] = h
	// An assignment to a map entry replaces the map's copy of a string key. Use the
	// string in names, so that its bytes are kept once, not twice.
	s.keys[s.names[a.number]] = a
	return !known
}

// nameLocked assigns a number to a new key.
func (s *shard[K, S]) nameLocked(key K) uint32 {
	if s.keys == nil {
		s.keys = make(map[K]keyEntry[S])
		s.subs = make(map[S]subEntry)
		s.links = make(map[pair]link)
	}
	n := s.keyNumbers.take()
	if int(n) == len(s.names) {
		s.names = append(s.names, key)
	} else {
		s.names[n] = key
	}
	return n
}

// findLocked returns the numbers of a pair, if the pair exists.
func (s *shard[K, S]) findLocked(key K, sub S) (pair, bool) {
	a, ok := s.keys[key]
	if !ok {
		return pair{}, false
	}
	h, ok := s.subs[sub]
	if !ok {
		return pair{}, false
	}
	p := pair{a.number, h.number}
	return p, s.linkedLocked(p)
}

func (s *shard[K, S]) linkedLocked(p pair) bool {
	_, ok := s.links[p]
	return ok
}

// removeLocked removes a pair and reports whether it was the last of its key.
func (s *shard[K, S]) removeLocked(key K, sub S) (last bool) {
	p, ok := s.findLocked(key, sub)
	if !ok {
		return false
	}
	l := s.links[p]
	h := s.subs[sub]
	switch {
	case l.prev != none:
		s.relinkLocked(pair{l.prev, p.sub}, func(prev *link) { prev.next = l.next })
	case l.next != none:
		h.head = l.next
		s.subs[sub] = h
	default:
		delete(s.subs, sub)
		s.subNumbers.put(p.sub)
	}
	s.relinkLocked(pair{l.next, p.sub}, func(next *link) { next.prev = l.prev })
	last = s.unlistLocked(p, l.at)
	s.trimLocked()
	return last
}

// unlistLocked removes a pair from links and from its key's list, and reports whether the
// list is empty then. The caller updates the subscriber's chain.
func (s *shard[K, S]) unlistLocked(p pair, at uint32) (last bool) {
	delete(s.links, p)
	key := s.names[p.key]
	a := s.keys[key]
	end := len(a.subs) - 1
	if end == 0 {
		delete(s.keys, key)
		var zero K
		s.names[p.key] = zero
		s.keyNumbers.put(p.key)
		return true
	}
	if moved := a.subs[end]; int(at) != end {
		a.subs[at] = moved
		s.relinkLocked(pair{p.key, s.subs[moved].number}, func(l *link) { l.at = at })
	}
	clear(a.subs[end:]) // let the garbage collector free what it points to
	a.subs = shrink(a.subs[:end])
	s.keys[key] = a
	return false
}

// relinkLocked changes the link of p, unless p.key is none.
func (s *shard[K, S]) relinkLocked(p pair, change func(*link)) {
	if p.key == none {
		return
	}
	l := s.links[p]
	change(&l)
	s.links[p] = l
}

// prune removes every pair of sub, and appends its keys to dst.
func (s *shard[K, S]) prune(dst []Released[K], sub S) []Released[K] {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.subs[sub]
	if !ok {
		return dst
	}
	for n := h.head; n != none; {
		p := pair{n, h.number}
		l, key := s.links[p], s.names[n]
		dst = append(dst, Released[K]{Key: key, Last: s.unlistLocked(p, l.at)})
		n = l.next
	}
	delete(s.subs, sub)
	s.subNumbers.put(h.number)
	s.trimLocked()
	return dst
}

// trimLocked frees the storage of an empty shard that was large.
func (s *shard[K, S]) trimLocked() {
	if len(s.keys) > 0 || max(s.keyNumbers.next, s.subNumbers.next) <= keepNumbers {
		return
	}
	s.keys, s.subs, s.links, s.names = nil, nil, nil, nil
	s.keyNumbers, s.subNumbers = numbers{}, numbers{}
}

func (s *shard[K, S]) snapshot(into map[K][]S) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key, a := range s.keys {
		into[key] = slices.Clone(a.subs)
	}
}

func (s *shard[K, S]) walk(visit func(K, []S)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key, a := range s.keys {
		visit(key, a.subs)
	}
}

// shrink halves the capacity of list if three quarters of it are unused. The amortized
// cost per removal is constant.
func shrink[S any](list []S) []S {
	if cap(list) <= keepList || len(list) > cap(list)/4 {
		return list
	}
	return append(make([]S, 0, cap(list)/2), list...)
}

// numbers allocates numbers from zero and reuses returned ones first. So there are never
// more of them than were in use at once, and memory runs out before 32 bits do.
type numbers struct {
	next uint32
	free []uint32 // returned, all below next
}

func (n *numbers) take() uint32 {
	if last := len(n.free) - 1; last >= 0 {
		taken := n.free[last]
		n.free = n.free[:last]
		return taken
	}
	n.next++
	return n.next - 1
}

func (n *numbers) put(returned uint32) { n.free = append(n.free, returned) }
