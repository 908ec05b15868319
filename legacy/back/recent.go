package back

import (
	"fmt"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// recent maps the most recently used keys to values. Safe for concurrent use.
type recent[K comparable, V any] struct {
	mu  sync.Mutex // guards lru; a leaf
	lru *simplelru.LRU[K, V]
}

func newRecent[K comparable, V any](most int) (*recent[K, V], error) {
	lru, err := simplelru.NewLRU[K, V](most, nil)
	if err != nil {
		return nil, fmt.Errorf("legacy/back: New: %w", err)
	}
	return &recent[K, V]{lru: lru}, nil
}

// get returns the value of a key, or zero.
func (r *recent[K, V]) get(key K) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, _ := r.lru.Get(key)
	return v
}

// put stores a value, and returns the previous one.
func (r *recent[K, V]) put(key K, v V) (before V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, _ = r.lru.Get(key)
	r.lru.Add(key, v)
	return before
}

// getOr returns the value of a key. If there is none, it stores the result of make.
func (r *recent[K, V]) getOr(key K, make func() V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.lru.Get(key)
	if !ok {
		v = make()
		r.lru.Add(key, v)
	}
	return v
}
