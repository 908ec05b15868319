package interop

import (
	"sync"
	"time"
)

// An inbox holds what arrives until somebody takes it. It has no bound: a
// handler that blocks would stop the SDK's whole connection.
type inbox[T any] struct {
	ready chan struct{} // capacity 1: holds a token while there may be items

	mu    sync.Mutex // guards items
	items []T
}

func newInbox[T any]() *inbox[T] { return &inbox[T]{ready: make(chan struct{}, 1)} }

func (b *inbox[T]) put(item T) {
	b.mu.Lock()
	b.items = append(b.items, item)
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default: // a token is there
	}
}

func (b *inbox[T]) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = nil
}

func (b *inbox[T]) pop() (item T, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.items) == 0 {
		return item, false
	}
	item = b.items[0]
	b.items = b.items[1:]
	return item, true
}

// take returns the next item; ok is false if none came within d.
func (b *inbox[T]) take(d time.Duration) (item T, ok bool) {
	late := time.After(d)
	for {
		if item, ok := b.pop(); ok {
			return item, true
		}
		select {
		case <-b.ready:
		case <-late:
			return b.pop()
		}
	}
}

// collect takes n items, and those that come on their heels.
func (b *inbox[T]) collect(n int) []any {
	got := []any{}
	end := time.Now().Add(2 * time.Second)
	for {
		wait := time.Until(end)
		if len(got) >= n {
			wait = 100 * time.Millisecond
		}
		item, ok := b.take(wait)
		if !ok {
			return got
		}
		got = append(got, item)
	}
}
