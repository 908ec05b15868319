package upstream

import (
	"fmt"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// A Recent maps the most recently used keys to values. Safe for concurrent use.
type Recent[K comparable, V any] struct {
	mu  sync.Mutex // guards lru; a leaf
	lru *simplelru.LRU[K, V]
}

func NewRecent[K comparable, V any](most int) (*Recent[K, V], error) {
	lru, err := simplelru.NewLRU[K, V](most, nil)
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	return &Recent[K, V]{lru: lru}, nil
}

// Get returns the value of a key, or zero.
func (r *Recent[K, V]) Get(key K) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, _ := r.lru.Get(key)
	return v
}

// Put stores a value, and returns the previous one.
func (r *Recent[K, V]) Put(key K, v V) (before V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, _ = r.lru.Get(key)
	r.lru.Add(key, v)
	return before
}

// GetOr returns the value of a key. If there is none, it stores the result of make.
func (r *Recent[K, V]) GetOr(key K, make func() V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.lru.Get(key)
	if !ok {
		v = make()
		r.lru.Add(key, v)
	}
	return v
}
