package index

// What tests look at, and nobody else asks.

// AppendKeys appends the keys of sub to dst, in no particular order.
func (x *Index[K, S]) AppendKeys(dst []K, sub S) []K {
	for i := range x.shards {
		dst = x.shards[i].appendKeys(dst, sub)
	}
	return dst
}

// Contains reports whether sub is a subscriber of key.
func (x *Index[K, S]) Contains(key K, sub S) bool {
	sh := x.shard(key)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	_, ok := sh.findLocked(key, sub)
	return ok
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
