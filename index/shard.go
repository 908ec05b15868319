package index

import (
	"slices"
	"sync"
)

const (
	// none ends a chain of links. No key has this number.
	none = ^uint32(0)

	// keepNumbers is how many keys or subscribers an emptied shard may have had
	// at once for its storage to be kept. Maps never shrink by themselves.
	keepNumbers = 1024

	// keepList is the capacity up to which a key's list is never shrunk.
	keepList = 16
)

// A shard holds all pairs of the keys that hash to it. Both directions of a
// pair are in the same shard and change under the same lock, so that no race
// can leave one of them stale.
//
// From a key, its subscribers are a plain list: the look-up for an event is one
// map access and one copy. From a subscriber, its keys are a chain through
// links, which holds one entry per pair: where the subscriber is in the key's
// list, and which keys come before and after it in the subscriber's chain. So a
// pair is removed without a search in either direction, and what it costs
// beside the list is one entry of a map without pointers, which the garbage
// collector doesn't scan.
type shard[K, S comparable] struct {
	// mu guards the fields below, for map work only. No other lock is taken
	// while it is held. The maps are nil until first needed.
	mu    sync.RWMutex
	keys  map[K]audience[S]
	subs  map[S]holding
	links map[pair]link

	names      []K // by key number; the zero K where the number is free
	keyNumbers numbers
	subNumbers numbers
}

// An audience is what a shard knows of a key.
type audience[S comparable] struct {
	subs   []S // never empty
	number uint32
}

// A holding is what a shard knows of a subscriber.
type holding struct {
	number uint32
	head   uint32 // the key at which the chain begins, never none
}

// A pair names a key and a subscriber by their numbers in the shard.
type pair struct{ key, sub uint32 }

// A link is a pair's place in both directions.
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
		h = holding{number: s.subNumbers.take(), head: none}
	}
	s.links[pair{a.number, h.number}] = link{at: uint32(len(a.subs)), prev: none, next: h.head}
	s.relinkLocked(pair{h.head, h.number}, func(l *link) { l.prev = a.number })
	h.head = a.number
	a.subs = append(a.subs, sub)
	s.subs[sub] = h
	// Assigning to a string key replaces the map's own copy of it. Under the name
	// that is kept already, its bytes are held once, not once in each place.
	s.keys[s.names[a.number]] = a
	return !known
}

// nameLocked gives a number to a key that has none.
func (s *shard[K, S]) nameLocked(key K) uint32 {
	if s.keys == nil {
		s.keys = make(map[K]audience[S])
		s.subs = make(map[S]holding)
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

// findLocked returns the numbers of a pair, if it is there.
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

// unlistLocked takes a pair out of links and out of its key's list, and reports
// whether the list ended with it. The subscriber's chain is the caller's work.
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
	clear(a.subs[end:]) // drop what a pointer there would keep alive
	a.subs = shrink(a.subs[:end])
	s.keys[key] = a
	return false
}

// relinkLocked changes the link of p, if there is such a pair.
func (s *shard[K, S]) relinkLocked(p pair, change func(*link)) {
	if p.key == none {
		return
	}
	l := s.links[p]
	change(&l)
	s.links[p] = l
}

// prune removes every pair of sub, and appends the keys it held to dst.
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

// trimLocked gives the storage of a shard back that was large and is empty.
func (s *shard[K, S]) trimLocked() {
	if len(s.keys) > 0 || max(s.keyNumbers.next, s.subNumbers.next) <= keepNumbers {
		return
	}
	s.keys, s.subs, s.links, s.names = nil, nil, nil, nil
	s.keyNumbers, s.subNumbers = numbers{}, numbers{}
}

func (s *shard[K, S]) appendKeys(dst []K, sub S) []K {
	s.mu.RLock()
	defer s.mu.RUnlock()
	h, ok := s.subs[sub]
	if !ok {
		return dst
	}
	for n := h.head; n != none; n = s.links[pair{n, h.number}].next {
		dst = append(dst, s.names[n])
	}
	return dst
}

func (s *shard[K, S]) snapshot(into map[K][]S) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key, a := range s.keys {
		into[key] = slices.Clone(a.subs)
	}
}

// shrink returns list in half its capacity once three quarters of it are
// unused, which costs constant time per removal in the long run.
func shrink[S any](list []S) []S {
	if cap(list) <= keepList || len(list) > cap(list)/4 {
		return list
	}
	return append(make([]S, 0, cap(list)/2), list...)
}

// numbers hands out numbers from zero and reuses the returned ones first, so
// that there are never more than were in use at once. Four billion of them
// outlast the memory of any machine.
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
